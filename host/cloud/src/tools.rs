//! The programs of others that this crate runs: exact arguments, the source of each, a time limit.
//!
//! A program is started with these arguments, never through a shell. `{name}` stands for a value.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::CloudError;

/// An argument, and the public text that documents it.
pub type Argument = (&'static str, &'static str);

/// A program with its arguments.
#[derive(Debug)]
pub struct Tool {
    /// Name in messages about steps.
    pub name: &'static str,
    /// The program, found on PATH.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// Time limit.
    pub limit: Duration,
    /// The IAM action that a program of AWS needs.
    pub action: &'static str,
}

const SETUP: &str = "aws-fpga f2: hdk_setup.sh";
const SCRIPT: &str = "aws-fpga f2: hdk/common/shell_stable/build/scripts/aws_build_dcp_from_cl.py";
const BATCH: &str = "AMD UG835, Vivado command line";
const AWS: &str = "AWS CLI reference: global options";
const STS: &str = "AWS CLI reference: sts get-caller-identity";
const QUOTAS: &str = "AWS CLI reference: service-quotas get-service-quota";
const OFFERINGS: &str = "AWS CLI reference: ec2 describe-instance-type-offerings";
const CREATE: &str = "aws-fpga f2: AWS-CLI-FPGA-Commands, create-fpga-image";
const DESCRIBE: &str = "aws-fpga f2: AWS-CLI-FPGA-Commands, describe-fpga-images";
const PUT: &str = "AWS CLI reference: s3api put-object";
const S3API: &str = "AWS CLI reference: s3api";
const SLOT: &str = "aws-fpga f2: sdk/userspace/fpga_mgmt_tools/src/fpga_local_cmd_parse.c";
const VETH: &str = "aws-fpga f2: sdk/apps/virtual-ethernet, set-up since 2.3.0";
const KMOD: &str = "kmod: modprobe(8)";

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Version of Vivado.
pub const VIVADO_VERSION: Tool = Tool {
    name: "vivado-version",
    program: "vivado",
    arguments: &[("-version", SETUP)],
    limit: seconds(120),
    action: "",
};

/// Version of the AWS CLI.
pub const AWS_VERSION: Tool = Tool {
    name: "aws-version",
    program: "aws",
    arguments: &[("--version", AWS)],
    limit: seconds(60),
    action: "",
};

/// The account.
pub const IDENTITY: Tool = Tool {
    name: "identity",
    program: "aws",
    arguments: &[("sts", STS), ("get-caller-identity", STS), ("--output", AWS), ("json", AWS)],
    limit: seconds(60),
    action: "sts:GetCallerIdentity",
};

/// The quota of F instances.
pub const QUOTA: Tool = Tool {
    name: "quota",
    program: "aws",
    arguments: &[
        ("service-quotas", QUOTAS),
        ("get-service-quota", QUOTAS),
        ("--service-code", QUOTAS),
        ("ec2", QUOTAS),
        ("--quota-code", QUOTAS),
        ("L-74FC7D96", "AWS Service Quotas: Running On-Demand F instances"),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(60),
    action: "servicequotas:GetServiceQuota",
};

/// The F2 instances of a region.
pub const REGION: Tool = Tool {
    name: "offerings",
    program: "aws",
    arguments: &[
        ("ec2", OFFERINGS),
        ("describe-instance-type-offerings", OFFERINGS),
        ("--filters", OFFERINGS),
        (
            "Name=instance-type,Values=f2.6xlarge,f2.12xlarge,f2.48xlarge",
            "aws-fpga f2: hdk/scripts/create_afi.py",
        ),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(60),
    action: "ec2:DescribeInstanceTypeOfferings",
};

/// A flow of the kit's build script: SynthCL or ImplCL.
pub const BUILD: Tool = Tool {
    name: "build",
    program: "python3",
    arguments: &[
        ("aws_build_dcp_from_cl.py", SCRIPT),
        ("-c", SCRIPT),
        ("{cl}", SCRIPT),
        ("-m", SCRIPT),
        ("small_shell", SCRIPT),
        ("-f", SCRIPT),
        ("{flow}", SCRIPT),
        ("-p", SCRIPT),
        ("{place}", SCRIPT),
        ("-r", SCRIPT),
        ("{route}", SCRIPT),
        ("-t", SCRIPT),
        ("{tag}", SCRIPT),
    ],
    limit: seconds(24 * 3600),
    action: "",
};

/// The check of a routed checkpoint against the shell's.
pub const VERIFY: Tool = Tool {
    name: "pr-verify",
    program: "vivado",
    arguments: &[
        ("-mode", BATCH),
        ("batch", BATCH),
        ("-nojournal", BATCH),
        ("-log", BATCH),
        ("{log}", BATCH),
        ("-source", BATCH),
        ("{script}", BATCH),
        ("-tclargs", BATCH),
        ("{shell}", "ours: shef_pr_verify.tcl"),
        ("{routed}", "ours: shef_pr_verify.tcl"),
        ("{report}", "ours: shef_pr_verify.tcl"),
    ],
    limit: seconds(2 * 3600),
    action: "",
};

/// The bucket's region.
pub const LOCATION: Tool = Tool {
    name: "bucket-location",
    program: "aws",
    arguments: &[
        ("s3api", S3API),
        ("get-bucket-location", S3API),
        ("--bucket", S3API),
        ("{bucket}", S3API),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(60),
    action: "s3:GetBucketLocation",
};

/// Whether the bucket keeps deleted objects.
pub const VERSIONING: Tool = Tool {
    name: "bucket-versioning",
    program: "aws",
    arguments: &[
        ("s3api", S3API),
        ("get-bucket-versioning", S3API),
        ("--bucket", S3API),
        ("{bucket}", S3API),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(60),
    action: "s3:GetBucketVersioning",
};

/// Uploads the tarball, in one request: one that is cut leaves nothing in the bucket.
pub const UPLOAD: Tool = Tool {
    name: "upload",
    program: "aws",
    arguments: &[
        ("s3api", PUT),
        ("put-object", PUT),
        ("--bucket", PUT),
        ("{bucket}", PUT),
        ("--key", PUT),
        ("{key}", PUT),
        ("--body", PUT),
        ("{file}", PUT),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(3600),
    action: "s3:PutObject",
};

/// Size of the object.
pub const HEAD: Tool = Tool {
    name: "head-object",
    program: "aws",
    arguments: &[
        ("s3api", S3API),
        ("head-object", S3API),
        ("--bucket", S3API),
        ("{bucket}", S3API),
        ("--key", S3API),
        ("{key}", S3API),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(60),
    action: "s3:GetObject",
};

/// Deletes the object.
pub const DELETE: Tool = Tool {
    name: "delete-object",
    program: "aws",
    arguments: &[
        ("s3api", S3API),
        ("delete-object", S3API),
        ("--bucket", S3API),
        ("{bucket}", S3API),
        ("--key", S3API),
        ("{key}", S3API),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(60),
    action: "s3:DeleteObject",
};

/// Starts the making of an AFI. The client token makes it the same one at a second call.
pub const CREATE_AFI: Tool = Tool {
    name: "create-afi",
    program: "aws",
    arguments: &[
        ("ec2", CREATE),
        ("create-fpga-image", CREATE),
        ("--name", CREATE),
        ("{name}", CREATE),
        ("--description", CREATE),
        ("{description}", CREATE),
        ("--input-storage-location", CREATE),
        ("Bucket={bucket},Key={key}", CREATE),
        ("--logs-storage-location", CREATE),
        ("Bucket={bucket},Key={logs}", CREATE),
        ("--client-token", CREATE),
        ("{token}", CREATE),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(300),
    action: "ec2:CreateFpgaImage",
};

/// State of an AFI.
pub const DESCRIBE_AFI: Tool = Tool {
    name: "describe-afi",
    program: "aws",
    arguments: &[
        ("ec2", DESCRIBE),
        ("describe-fpga-images", DESCRIBE),
        ("--fpga-image-ids", DESCRIBE),
        ("{afi}", DESCRIBE),
        ("--region", AWS),
        ("{region}", AWS),
        ("--output", AWS),
        ("json", AWS),
    ],
    limit: seconds(60),
    action: "ec2:DescribeFpgaImages",
};

/// State of a slot.
pub const DESCRIBE_SLOT: Tool = Tool {
    name: "describe-slot",
    program: "fpga-describe-local-image",
    arguments: &[("-S", SLOT), ("{slot}", SLOT)],
    limit: seconds(60),
    action: "",
};

/// State of a slot, after the bus was scanned for its PCI functions.
pub const RESCAN_SLOT: Tool = Tool {
    name: "rescan-slot",
    program: "fpga-describe-local-image",
    arguments: &[("-S", SLOT), ("{slot}", SLOT), ("-R", SLOT)],
    limit: seconds(120),
    action: "",
};

/// State and counters of a slot.
pub const SLOT_METRICS: Tool = Tool {
    name: "slot-metrics",
    program: "fpga-describe-local-image",
    arguments: &[("-S", SLOT), ("{slot}", SLOT), ("-M", SLOT)],
    limit: seconds(60),
    action: "",
};

/// Starts a load.
pub const LOAD_SLOT: Tool = Tool {
    name: "load-slot",
    program: "fpga-load-local-image",
    arguments: &[("-S", SLOT), ("{slot}", SLOT), ("-I", SLOT), ("{agfi}", SLOT), ("-A", SLOT)],
    limit: seconds(120),
    action: "",
};

/// Starts a clear.
pub const CLEAR_SLOT: Tool = Tool {
    name: "clear-slot",
    program: "fpga-clear-local-image",
    arguments: &[("-S", SLOT), ("{slot}", SLOT), ("-A", SLOT)],
    limit: seconds(120),
    action: "",
};

/// Loads VFIO for machines without an IOMMU.
pub const MODPROBE_VFIO: Tool = Tool {
    name: "modprobe-vfio",
    program: "modprobe",
    arguments: &[("vfio", KMOD), ("enable_unsafe_noiommu_mode=1", VETH)],
    limit: seconds(60),
    action: "",
};

/// Loads the driver.
pub const MODPROBE_PCI: Tool = Tool {
    name: "modprobe-vfio-pci",
    program: "modprobe",
    arguments: &[("vfio-pci", KMOD)],
    limit: seconds(60),
    action: "",
};

/// All of them.
pub const ALL: &[&Tool] = &[
    &VIVADO_VERSION,
    &AWS_VERSION,
    &IDENTITY,
    &QUOTA,
    &REGION,
    &BUILD,
    &VERIFY,
    &LOCATION,
    &VERSIONING,
    &UPLOAD,
    &HEAD,
    &DELETE,
    &CREATE_AFI,
    &DESCRIBE_AFI,
    &DESCRIBE_SLOT,
    &RESCAN_SLOT,
    &SLOT_METRICS,
    &LOAD_SLOT,
    &CLEAR_SLOT,
    &MODPROBE_VFIO,
    &MODPROBE_PCI,
];

/// A program with the values of its arguments, ready to run.
#[derive(Debug, Clone)]
pub struct Call {
    /// The program.
    pub tool: &'static Tool,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Folder that it works in.
    pub folder: Option<PathBuf>,
    /// Variables that it gets besides ours.
    pub variables: Vec<(&'static str, OsString)>,
    /// Variables of ours that it does not get.
    pub without: &'static [&'static str],
    /// File for its output, which is otherwise returned.
    pub log: Option<PathBuf>,
}

impl Tool {
    /// The program with these values.
    ///
    /// # Errors
    /// SHEF-CLD-054 if a value could be read as another argument.
    pub fn call(&'static self, values: &[(&'static str, &str)]) -> Result<Call, CloudError> {
        let mut arguments = Vec::new();
        for (text, _) in self.arguments {
            let mut filled = (*text).to_owned();
            for (name, value) in values {
                let begins = filled.starts_with(&format!("{{{name}}}"));
                // No option, and no second pair in a list of pairs.
                let list = text.contains('=') && text.contains(',');
                if filled.contains(&format!("{{{name}}}"))
                    && (value.is_empty()
                        || begins && value.starts_with('-')
                        || list && value.contains(['=', ',']))
                {
                    return Err(CloudError::Value {
                        what: name,
                        found: (*value).to_owned(),
                        expected: "a text that is not empty and no option",
                    });
                }
                filled = filled.replace(&format!("{{{name}}}"), value);
            }
            arguments.push(filled.into());
        }
        Ok(Call {
            tool: self,
            arguments,
            folder: None,
            variables: Vec::new(),
            without: &[],
            log: None,
        })
    }
}

impl Call {
    /// The command as one line, each argument a word of a shell, as a person would type it.
    #[must_use]
    pub fn line(&self) -> String {
        let folder = self.folder.as_deref().map(shef_console::shell::word);
        let mut line = folder.map(|folder| format!("cd {folder} && ")).unwrap_or_default();
        if !self.without.is_empty() {
            line.push_str("env ");
        }
        line.extend(self.without.iter().map(|name| format!("-u {name} ")));
        for (name, value) in &self.variables {
            line.push_str(&format!("{name}={} ", shef_console::shell::argument(value)));
        }
        line.push_str(self.tool.program);
        for argument in &self.arguments {
            line.push(' ');
            line.push_str(&shef_console::shell::argument(argument));
        }
        line
    }

    /// Works in this folder.
    #[must_use]
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_has_a_source_and_every_program_a_limit() {
        let mut names = std::collections::BTreeSet::new();
        for tool in ALL {
            assert!(names.insert(tool.name), "{} twice", tool.name);
            assert!(tool.limit >= seconds(60), "{}", tool.name);
            assert_eq!(
                tool.action.is_empty(),
                tool.program != "aws" || tool.name == "aws-version",
                "{}",
                tool.name
            );
            for (argument, source) in tool.arguments {
                assert!(!source.is_empty(), "{} {argument}", tool.name);
            }
        }
    }

    #[test]
    fn a_value_is_one_argument_and_no_option() {
        let call = LOAD_SLOT.call(&[("slot", "0"), ("agfi", "agfi-1 -F")]).unwrap();
        assert_eq!(call.arguments.len(), 5);
        assert_eq!(call.line(), "fpga-load-local-image -S 0 -I 'agfi-1 -F' -A");
        for value in ["-F", ""] {
            let error = LOAD_SLOT.call(&[("slot", "0"), ("agfi", value)]).unwrap_err();
            assert_eq!(error.code(), "SHEF-CLD-054");
        }
        let create = |key| CREATE_AFI.call(&[("bucket", "b"), ("key", key)]).map(|_| ());
        assert!(create("a/b.tar").is_ok() && create("a,Bucket=c").is_err());
    }
}
