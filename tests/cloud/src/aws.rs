//! The AWS CLI: account, S3 and AFIs.

use std::path::Path;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::world::{Afi, World};

/// The value after an option.
fn after<'a>(arguments: &'a [String], option: &str) -> &'a str {
    let at = arguments.iter().position(|it| it == option);
    at.and_then(|at| arguments.get(at + 1)).map_or("", String::as_str)
}

fn failed(text: &str, status: i32) -> i32 {
    eprintln!("\n{text}");
    status
}

/// Answers a form. Returns the exit status.
#[must_use]
pub fn answer(folder: &Path, form: &str, fault: &str, arguments: &[String]) -> i32 {
    let mut world = World::of(folder);
    let object = format!("{}/{}", after(arguments, "--bucket"), after(arguments, "--key"));
    let say = |value: serde_json::Value| println!("{value:#}");
    let status = match form {
        "aws-version" => {
            println!("aws-cli/2.31.2 Python/3.13.7 Linux/6.8.0 exe/x86_64.ubuntu.22");
            0
        }
        "identity" => {
            say(
                json!({"UserId": "AIDA", "Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/vendor"}),
            );
            0
        }
        "quota" => {
            let value = if fault == "zero" { 0.0 } else { 96.0 };
            say(
                json!({"Quota": {"ServiceCode": "ec2", "QuotaCode": "L-74FC7D96", "Value": value, "Adjustable": true}}),
            );
            0
        }
        "offerings" => {
            let types: &[&str] = if fault == "none" { &[] } else { &["f2.6xlarge", "f2.48xlarge"] };
            let list: Vec<_> = types.iter().map(|it| json!({"InstanceType": it, "LocationType": "region", "Location": "us-east-1"})).collect();
            say(json!({"InstanceTypeOfferings": list}));
            0
        }
        "bucket-location" => {
            let place = if fault == "elsewhere" { json!("eu-west-2") } else { json!(null) };
            say(json!({"LocationConstraint": place}));
            0
        }
        "bucket-versioning" => {
            if fault == "versioned" {
                say(json!({"Status": "Enabled"}));
            }
            0
        }
        "upload" => {
            let body = after(arguments, "--body");
            let size = std::fs::metadata(body).map_or(0, |found| found.len());
            world.objects.insert(object, if fault == "cut" { size / 2 } else { size });
            say(json!({"ETag": "\"0123456789abcdef\"", "ServerSideEncryption": "AES256"}));
            0
        }
        "head-object" => match world.objects.get(&object) {
            Some(size) => {
                say(json!({"ContentLength": size, "ServerSideEncryption": "AES256"}));
                0
            }
            None => failed(
                "An error occurred (404) when calling the HeadObject operation: Not Found",
                254,
            ),
        },
        "delete-object" => {
            if fault != "kept" {
                world.objects.remove(&object);
            }
            0
        }
        "create-afi" => {
            let place = after(arguments, "--input-storage-location");
            let name = place.trim_start_matches("Bucket=").replacen(",Key=", "/", 1);
            if !world.objects.contains_key(&name) {
                return failed(
                    "An error occurred (InvalidParameterValue) when calling the CreateFpgaImage operation: the object does not exist",
                    254,
                );
            }
            let token = after(arguments, "--client-token");
            // The same token is the same request.
            let digits = &hex::encode(Sha256::digest(token))[..17];
            let afi = format!("afi-{digits}");
            let new = Afi { token: token.to_owned(), ..Afi::default() };
            world.afis.entry(afi.clone()).or_insert(new);
            let agfi =
                if fault == "short" { "agfi-1".to_owned() } else { format!("agfi-{digits}") };
            say(json!({"FpgaImageId": afi, "FpgaImageGlobalId": agfi}));
            0
        }
        "describe-afi" => {
            let id = after(arguments, "--fpga-image-ids").to_owned();
            match world.afis.get_mut(&id) {
                None => failed(
                    "An error occurred (InvalidFpgaImageID.NotFound) when calling the DescribeFpgaImages operation",
                    254,
                ),
                Some(afi) => {
                    afi.looks += 1;
                    let pending = afi.looks < 3 || fault == "never";
                    if let (Some(code), false) = (fault.strip_prefix("failed:"), pending) {
                        afi.failed = Some(format!("{code}: see the logs"));
                    }
                    let state = match &afi.failed {
                        Some(message) => json!({"Code": "failed", "Message": message}),
                        _ if pending => json!({"Code": "pending"}),
                        _ if fault == "unavailable" => json!({"Code": "unavailable"}),
                        _ if fault == "unknown-state" => json!({"Code": "hibernating"}),
                        _ => json!({"Code": "available"}),
                    };
                    let id =
                        if fault == "other-afi" { "afi-00000000000000000".to_owned() } else { id };
                    say(json!({"FpgaImages": [{"FpgaImageId": id, "State": state}]}));
                    0
                }
            }
        }
        _ => 252,
    };
    world.keep(folder);
    status
}
