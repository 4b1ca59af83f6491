//! The arguments of each program, with the public text that documents them.
//!
//! This table is written from those texts, not from `shef cloud`: an argument that only `shef cloud`
//! knows is refused.

/// A value of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This text.
    Is(&'static str),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A name, as of regions, buckets and images.
    Name,
    /// A name with `/`, as of objects.
    Key,
    /// A file or folder.
    Path,
    /// `Bucket=NAME,Key=KEY`.
    Location,
    /// `afi-` and digits.
    Afi,
    /// `agfi-` and digits.
    Agfi,
    /// A slot.
    Slot,
    /// Up to 64 printable characters.
    Token,
    /// Any text.
    Text,
}

use Kind::{Afi, Agfi, Is, Key, Location, Name, OneOf, Path, Slot, Text, Token};

/// A form of a program.
pub struct Form {
    /// The fake that answers.
    pub name: &'static str,
    /// The program.
    pub program: &'static str,
    /// Its arguments, each with its source.
    pub arguments: &'static [(Kind, &'static str)],
}

const EC2: &str = "docs.aws.amazon.com/cli/latest/reference/ec2";
const S3API: &str = "docs.aws.amazon.com/cli/latest/reference/s3api";
const PUT: &str = "docs.aws.amazon.com/cli/latest/reference/s3api/put-object.html";
const GLOBAL: &str = "docs.aws.amazon.com/cli/latest/reference/#options";
const STS: &str = "docs.aws.amazon.com/cli/latest/reference/sts/get-caller-identity.html";
const QUOTAS: &str =
    "docs.aws.amazon.com/cli/latest/reference/service-quotas/get-service-quota.html";
const FPGA: &str = "awsdocs-fpga-f2.readthedocs-hosted.com: AWS-CLI-FPGA-Commands";
const TOOLS: &str = "awsdocs-fpga-f2.readthedocs-hosted.com: fpga-mgmt-tools";
const DCP: &str = "aws-fpga f2: aws_build_dcp_from_cl.py, its OptionParser";
const VIVADO: &str = "AMD UG835: vivado -help";
const PLACE: &[&str] = &["SSI_SpreadLogic_high", "Default", "Explore"];
const ROUTE: &[&str] = &["AggressiveExplore", "Default", "Explore"];

/// All forms.
pub const FORMS: &[Form] = &[
    Form { name: "vivado-version", program: "vivado", arguments: &[(Is("-version"), VIVADO)] },
    Form {
        name: "pr-verify",
        program: "vivado",
        arguments: &[
            (Is("-mode"), VIVADO),
            (Is("batch"), VIVADO),
            (Is("-nojournal"), VIVADO),
            (Is("-log"), VIVADO),
            (Path, VIVADO),
            (Is("-source"), VIVADO),
            (Path, VIVADO),
            (Is("-tclargs"), VIVADO),
            (Path, VIVADO),
            (Path, VIVADO),
            (Path, VIVADO),
        ],
    },
    Form {
        name: "build",
        program: "python3",
        arguments: &[
            (Is("aws_build_dcp_from_cl.py"), DCP),
            (Is("-c"), DCP),
            (Name, DCP),
            (Is("-m"), DCP),
            (Is("small_shell"), DCP),
            (Is("-f"), DCP),
            (OneOf(&["SynthCL", "ImplCL", "BuildAll"]), DCP),
            (Is("-p"), DCP),
            (OneOf(PLACE), DCP),
            (Is("-r"), DCP),
            (OneOf(ROUTE), DCP),
            (Is("-t"), DCP),
            (Name, DCP),
        ],
    },
    Form { name: "aws-version", program: "aws", arguments: &[(Is("--version"), GLOBAL)] },
    Form {
        name: "identity",
        program: "aws",
        arguments: &[
            (Is("sts"), STS),
            (Is("get-caller-identity"), STS),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "quota",
        program: "aws",
        arguments: &[
            (Is("service-quotas"), QUOTAS),
            (Is("get-service-quota"), QUOTAS),
            (Is("--service-code"), QUOTAS),
            (Is("ec2"), QUOTAS),
            (Is("--quota-code"), QUOTAS),
            (Is("L-74FC7D96"), QUOTAS),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "offerings",
        program: "aws",
        arguments: &[
            (Is("ec2"), EC2),
            (Is("describe-instance-type-offerings"), EC2),
            (Is("--filters"), EC2),
            (Is("Name=instance-type,Values=f2.6xlarge,f2.12xlarge,f2.48xlarge"), EC2),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "bucket-location",
        program: "aws",
        arguments: &[
            (Is("s3api"), S3API),
            (Is("get-bucket-location"), S3API),
            (Is("--bucket"), S3API),
            (Name, S3API),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "bucket-versioning",
        program: "aws",
        arguments: &[
            (Is("s3api"), S3API),
            (Is("get-bucket-versioning"), S3API),
            (Is("--bucket"), S3API),
            (Name, S3API),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "upload",
        program: "aws",
        arguments: &[
            (Is("s3api"), PUT),
            (Is("put-object"), PUT),
            (Is("--bucket"), PUT),
            (Name, PUT),
            (Is("--key"), PUT),
            (Key, PUT),
            (Is("--body"), PUT),
            (Path, PUT),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "head-object",
        program: "aws",
        arguments: &[
            (Is("s3api"), S3API),
            (Is("head-object"), S3API),
            (Is("--bucket"), S3API),
            (Name, S3API),
            (Is("--key"), S3API),
            (Key, S3API),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "delete-object",
        program: "aws",
        arguments: &[
            (Is("s3api"), S3API),
            (Is("delete-object"), S3API),
            (Is("--bucket"), S3API),
            (Name, S3API),
            (Is("--key"), S3API),
            (Key, S3API),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "create-afi",
        program: "aws",
        arguments: &[
            (Is("ec2"), FPGA),
            (Is("create-fpga-image"), FPGA),
            (Is("--name"), FPGA),
            (Name, FPGA),
            (Is("--description"), FPGA),
            (Text, FPGA),
            (Is("--input-storage-location"), FPGA),
            (Location, FPGA),
            (Is("--logs-storage-location"), FPGA),
            (Location, FPGA),
            (Is("--client-token"), FPGA),
            (Token, EC2),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "describe-afi",
        program: "aws",
        arguments: &[
            (Is("ec2"), FPGA),
            (Is("describe-fpga-images"), FPGA),
            (Is("--fpga-image-ids"), FPGA),
            (Afi, FPGA),
            (Is("--region"), GLOBAL),
            (Name, GLOBAL),
            (Is("--output"), GLOBAL),
            (Is("json"), GLOBAL),
        ],
    },
    Form {
        name: "describe-slot",
        program: "fpga-describe-local-image",
        arguments: &[(Is("-S"), TOOLS), (Slot, TOOLS)],
    },
    Form {
        name: "rescan-slot",
        program: "fpga-describe-local-image",
        arguments: &[(Is("-S"), TOOLS), (Slot, TOOLS), (Is("-R"), TOOLS)],
    },
    Form {
        name: "slot-metrics",
        program: "fpga-describe-local-image",
        arguments: &[(Is("-S"), TOOLS), (Slot, TOOLS), (Is("-M"), TOOLS)],
    },
    Form {
        name: "load-slot",
        program: "fpga-load-local-image",
        arguments: &[
            (Is("-S"), TOOLS),
            (Slot, TOOLS),
            (Is("-I"), TOOLS),
            (Agfi, TOOLS),
            (Is("-A"), TOOLS),
        ],
    },
    Form {
        name: "clear-slot",
        program: "fpga-clear-local-image",
        arguments: &[(Is("-S"), TOOLS), (Slot, TOOLS), (Is("-A"), TOOLS)],
    },
    Form {
        name: "modprobe-vfio",
        program: "modprobe",
        arguments: &[
            (Is("vfio"), "modprobe(8)"),
            (
                Is("enable_unsafe_noiommu_mode=1"),
                "kernel.org: drivers/vfio/container.c, its parameter",
            ),
        ],
    },
    Form {
        name: "modprobe-vfio-pci",
        program: "modprobe",
        arguments: &[(Is("vfio-pci"), "modprobe(8)")],
    },
];

impl Kind {
    /// Whether a text is such a value.
    fn fits(self, text: &str) -> bool {
        let name = |text: &str| {
            !text.is_empty()
                && !text.starts_with('-')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let key = |text: &str| !text.is_empty() && text.split('/').all(name);
        let id = |begin: &str| {
            let digits = text.strip_prefix(begin).unwrap_or_default();
            digits.len() == 17 && digits.bytes().all(|b| b.is_ascii_hexdigit())
        };
        match self {
            Is(wanted) => text == wanted,
            OneOf(all) => all.contains(&text),
            Name => name(text),
            Key => key(text),
            Path => text.starts_with('/'),
            Location => {
                let parts = text.strip_prefix("Bucket=").and_then(|rest| rest.split_once(",Key="));
                parts.is_some_and(|(bucket, rest)| name(bucket) && key(rest))
            }
            Afi => id("afi-"),
            Agfi => id("agfi-"),
            Slot => text.parse::<u32>().is_ok_and(|slot| slot < 8),
            Token => !text.is_empty() && text.len() <= 64 && text.is_ascii(),
            Text => !text.starts_with('-'),
        }
    }
}

/// The form of a program with these arguments.
#[must_use]
pub fn form(program: &str, arguments: &[String]) -> Option<&'static Form> {
    FORMS.iter().find(|form| {
        form.program == program
            && form.arguments.len() == arguments.len()
            && form.arguments.iter().zip(arguments).all(|((kind, _), text)| kind.fits(text))
    })
}
