//! From the tarball to an image (AFI) at AWS: upload, creation, waiting, and the end of the object in
//! S3, which holds the secret inside of the checkpoint.
//!
//! Each step is recorded beside the tarball. The client token of the request is the tarball's digest:
//! a command that was killed after the request gets the same image again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::AFI_FAILURES;
use crate::run::{self, Limits, Said};
use crate::tarball::Checked;
use crate::tools::{self, Call};
use crate::{CloudError, Step, Watch, place};

/// Most bytes of an object that S3 takes in one request.
const MOST: u64 = 5_000_000_000;
/// Failed connections in a row that the waiting bears.
const LOST: u32 = 10;

/// Where and how an image is made.
#[derive(Debug, Clone)]
pub struct Order {
    /// Region.
    pub region: String,
    /// Bucket in that region.
    pub bucket: String,
    /// Begin of the names in the bucket, without `/` at its end.
    pub prefix: String,
    /// Name of the AFI.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Time between two looks at its state.
    pub interval: Duration,
    /// Longest time to wait for it.
    pub wait: Duration,
    /// Limits of the programs.
    pub limits: Limits,
}

/// What was done for a tarball.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// SHA-256 of the tarball.
    pub tarball: String,
    /// Region.
    pub region: String,
    /// Bucket.
    pub bucket: String,
    /// The object.
    pub key: String,
    /// Whether the object is complete.
    pub uploaded: bool,
    /// The AFI, once it was requested.
    pub afi: Option<String>,
    /// Its global id.
    pub agfi: Option<String>,
    /// Whether AWS has made it.
    pub available: bool,
    /// Whether the object is gone.
    pub deleted: bool,
}

/// An image that AWS has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Id in its region.
    pub afi: String,
    /// Id in all regions.
    pub agfi: String,
    /// Region that it was requested in, also if a later call names another one.
    pub region: String,
    /// Bucket of AWS's logs.
    pub bucket: String,
}

impl Order {
    /// Name of the object for a tarball.
    fn key(&self, tarball: &Checked) -> String {
        format!("{}/{}-{}.tar", self.prefix, tarball.tag, &tarball.digest[..12])
    }

    /// Prefix of AWS's logs.
    #[must_use]
    pub fn logs(&self) -> String {
        format!("{}/logs", self.prefix)
    }

    fn upload(&self, tarball: &Checked, key: &str) -> Result<Call, CloudError> {
        let file = tarball.file.display().to_string();
        tools::UPLOAD.call(&[
            ("file", &file),
            ("bucket", &self.bucket),
            ("key", key),
            ("region", &self.region),
        ])
    }

    fn create(&self, tarball: &Checked, key: &str) -> Result<Call, CloudError> {
        tools::CREATE_AFI.call(&[
            ("name", &self.name),
            ("description", &self.description),
            ("bucket", &self.bucket),
            ("key", key),
            ("logs", &self.logs()),
            ("token", &tarball.digest),
            ("region", &self.region),
        ])
    }

    /// One line for each thing that would be done.
    ///
    /// # Errors
    /// SHEF-CLD-054, SHEF-CLD-055.
    pub fn plan(&self, tarball: &Checked) -> Result<Vec<Step>, CloudError> {
        let record = Record::of(tarball)?;
        let mut calls = Vec::new();
        let key = self.key(tarball);
        let own = object(&self.region, &self.bucket, &key);
        let old = object(&record.region, &record.bucket, &record.key);
        let here = record.is_at(self, &key);
        if record.afi.is_none() {
            if !here && record.holds_object() {
                calls.extend([tools::DELETE.call(&old)?, tools::HEAD.call(&old)?]);
            }
            if !here || !record.uploaded {
                let bucket = [("bucket", &*self.bucket), ("region", &*self.region)];
                calls.extend([tools::LOCATION.call(&bucket)?, tools::VERSIONING.call(&bucket)?]);
                calls.extend([self.upload(tarball, &key)?, tools::HEAD.call(&own)?]);
            }
            calls.push(self.create(tarball, &key)?);
        }
        // An image that was requested is in the region of its request.
        let (region, kept) = match &record.afi {
            Some(_) => (&record.region, old),
            None => (&self.region, own),
        };
        if !record.available {
            let afi = record.afi.as_deref().unwrap_or("AFI");
            calls.push(tools::DESCRIBE_AFI.call(&[("afi", afi), ("region", region)])?);
        }
        if record.deleted {
            let look = Step::from(tools::HEAD.call(&kept)?);
            let afi = record.afi.unwrap_or_default();
            let rest = format!("delete the object if it is there: {afi} in {region} is available");
            return Ok(vec![look, Step::Change(rest)]);
        }
        calls.extend([tools::DELETE.call(&kept)?, tools::HEAD.call(&kept)?]);
        Ok(calls.into_iter().map(Step::from).collect())
    }
}

fn object<'a>(region: &'a str, bucket: &'a str, key: &'a str) -> [(&'static str, &'a str); 3] {
    [("region", region), ("bucket", bucket), ("key", key)]
}

/// The record of a tarball.
fn record_of(tarball: &Path) -> PathBuf {
    tarball.with_extension("afi.json")
}

impl Record {
    /// The record of this tarball; a new one if the file is missing or belongs to another tarball.
    ///
    /// # Errors
    /// SHEF-CLD-055.
    pub fn of(tarball: &Checked) -> Result<Self, CloudError> {
        let path = record_of(&tarball.file);
        let found = match fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(CloudError::io("read", &path)(e)),
            Ok(bytes) => serde_json::from_slice::<Self>(&bytes).ok(),
        };
        let found = found.filter(|record| record.tarball == tarball.digest);
        Ok(found.unwrap_or(Self { tarball: tarball.digest.clone(), ..Self::default() }))
    }

    /// Whether its object is that of an order.
    fn is_at(&self, order: &Order, key: &str) -> bool {
        (&*self.region, &*self.bucket, &*self.key) == (&*order.region, &*order.bucket, key)
    }

    /// Whether its bucket may hold the object.
    fn holds_object(&self) -> bool {
        !self.bucket.is_empty() && !self.deleted
    }

    fn write(&self, tarball: &Checked) -> Result<(), CloudError> {
        let path = record_of(&tarball.file);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| CloudError::io("write", &path)(std::io::Error::other(e)))?;
        place::write(&path, &text)
    }
}

/// State of an AFI.
enum State {
    Pending,
    Available,
    Failed(CloudError),
}

/// Makes the image, or continues. At the end the object in S3 is gone, also if AWS made no image.
///
/// # Errors
/// [`CloudError`]; everything that was done is recorded.
pub fn make(order: &Order, tarball: &Checked, watch: Watch<'_>) -> Result<Made, CloudError> {
    let mut record = Record::of(tarball)?;
    if record.afi.is_none() {
        request(order, tarball, &mut record, watch)?;
    }
    let (Some(afi), Some(agfi)) = (record.afi.clone(), record.agfi.clone()) else {
        return Err(CloudError::AfiState {
            afi: "the record".to_owned(),
            state: "incomplete".to_owned(),
            message: record_of(&tarball.file).display().to_string(),
        });
    };
    if !record.available {
        match wait(order, &record.region, &afi, watch)? {
            State::Failed(error) => {
                // Another build makes another tarball: this object is of no use any more.
                delete(order, &record, watch)?;
                let path = record_of(&tarball.file);
                fs::remove_file(&path).map_err(CloudError::io("remove", &path))?;
                return Err(error);
            }
            _ => record.available = true,
        }
        record.write(tarball)?;
    }
    // Also an object that is recorded as deleted: another command may have made it again.
    if !record.deleted || is_there(order, &record)? {
        delete(order, &record, watch)?;
        record.deleted = true;
        record.write(tarball)?;
    }
    let Record { region, bucket, .. } = record;
    Ok(Made { afi, agfi, region, bucket })
}

/// Uploads the tarball and requests the image.
fn request(
    order: &Order,
    tarball: &Checked,
    record: &mut Record,
    watch: Watch<'_>,
) -> Result<(), CloudError> {
    if tarball.bytes > MOST {
        let (file, bytes) = (tarball.file.clone(), tarball.bytes);
        return Err(CloudError::TooLarge { file, bytes, most: MOST });
    }
    let key = order.key(tarball);
    if !record.is_at(order, &key) {
        // An object at another place has the secret, too.
        if record.holds_object() {
            delete(order, record, watch)?;
        }
        *record = Record {
            tarball: tarball.digest.clone(),
            region: order.region.clone(),
            bucket: order.bucket.clone(),
            key: key.clone(),
            ..Record::default()
        };
        // Before the upload: a second run finds the object of a first one that was cut.
        record.write(tarball)?;
    }
    if !record.uploaded {
        watch("looking at the bucket");
        fit(order)?;
        watch("uploading the tarball");
        run::run(&order.upload(tarball, &key)?, order.limits)?;
        let call = tools::HEAD.call(&object(&order.region, &order.bucket, &key))?;
        let said = run::run(&call, order.limits)?;
        let length = said.json("JSON with ContentLength")?["ContentLength"].as_u64();
        if length != Some(tarball.bytes) {
            return Err(CloudError::Object {
                bucket: order.bucket.clone(),
                key,
                found: length.map_or("no length".to_owned(), |n| format!("{n} bytes")),
                expected: format!("{} bytes", tarball.bytes),
            });
        }
        record.uploaded = true;
        record.write(tarball)?;
    }
    watch("requesting the image");
    let said = run::run(&order.create(tarball, &key)?, order.limits)?;
    let answer = said.json("JSON with FpgaImageId and FpgaImageGlobalId")?;
    record.afi = Some(id(&said, &answer, "FpgaImageId", "afi-")?);
    record.agfi = Some(id(&said, &answer, "FpgaImageGlobalId", "agfi-")?);
    record.write(tarball)
}

/// An id of an answer.
fn id(said: &Said, answer: &Value, key: &str, begin: &str) -> Result<String, CloudError> {
    let id = answer[key].as_str().unwrap_or_default();
    if is_id(id, begin) {
        Ok(id.to_owned())
    } else {
        Err(said.unlike("ids as afi-0123456789abcdef0 and agfi-0123456789abcdef0"))
    }
}

/// Whether a text is an id of AWS: a prefix and hexadecimal digits.
#[must_use]
pub fn is_id(text: &str, begin: &str) -> bool {
    let digits = text.strip_prefix(begin).unwrap_or_default();
    (8..=32).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Checks that the bucket is in the region and keeps no deleted objects.
fn fit(order: &Order) -> Result<(), CloudError> {
    let values = [("bucket", &*order.bucket), ("region", &*order.region)];
    let unfit = |found: String, expected: &str| CloudError::Object {
        bucket: order.bucket.clone(),
        key: order.prefix.clone(),
        found,
        expected: expected.to_owned(),
    };
    let said = run::run(&tools::LOCATION.call(&values)?, order.limits)?;
    let answer = said.json("JSON with LocationConstraint")?;
    let Some(place) = answer.get("LocationConstraint") else {
        return Err(said.unlike("JSON with LocationConstraint"));
    };
    // AWS's oldest region has no name there.
    let place = place.as_str().unwrap_or("us-east-1");
    if place != order.region {
        return Err(unfit(format!("the bucket is in {place}"), &order.region));
    }
    let said = run::run(&tools::VERSIONING.call(&values)?, order.limits)?;
    // Without versioning there is no answer at all.
    if !said.text.trim().is_empty() {
        let answer = said.json("nothing, or JSON with Status")?;
        if let Some(status) = answer["Status"].as_str() {
            return Err(unfit(
                format!("its versioning is {status}"),
                "a bucket without versioning",
            ));
        }
    }
    Ok(())
}

/// Waits for the end of a pending image.
fn wait(order: &Order, region: &str, afi: &str, watch: Watch<'_>) -> Result<State, CloudError> {
    let begun = Instant::now();
    let mut lost = 0;
    loop {
        match look(order, region, afi) {
            Ok(State::Pending) => lost = 0,
            Ok(ended) => return Ok(ended),
            Err(error @ CloudError::Connection { .. }) => {
                lost += 1;
                if lost == LOST {
                    return Err(error);
                }
                watch(&format!("no connection, trying again ({lost} of {LOST})"));
            }
            Err(error) => return Err(error),
        }
        let minutes = begun.elapsed().as_secs() / 60;
        if begun.elapsed() >= order.wait {
            let state = "pending".to_owned();
            return Err(CloudError::AfiLate { afi: afi.to_owned(), state, minutes });
        }
        watch(&format!("AWS makes {afi}: pending for {minutes} min (often 30 to 60)"));
        std::thread::sleep(order.interval);
    }
}

fn look(order: &Order, region: &str, afi: &str) -> Result<State, CloudError> {
    let call = tools::DESCRIBE_AFI.call(&[("afi", afi), ("region", region)])?;
    let said = run::run(&call, order.limits)?;
    let answer = said.json("JSON with FpgaImages")?;
    let image = &answer["FpgaImages"][0];
    let state = image["State"]["Code"].as_str().unwrap_or_default();
    if image["FpgaImageId"].as_str() != Some(afi) {
        return Err(said.unlike("one image of FpgaImages, with the id of the request"));
    }
    let message = image["State"]["Message"].as_str().unwrap_or_default();
    let (afi, message) = (afi.to_owned(), message.chars().take(300).collect::<String>());
    match state {
        "pending" => Ok(State::Pending),
        "available" => Ok(State::Available),
        "failed" => {
            let name = message.split(':').next().unwrap_or_default().trim();
            let known = AFI_FAILURES.iter().find(|failure| failure.name == name);
            Ok(State::Failed(match known {
                Some(failure) => CloudError::Afi { afi, failure, message },
                None => CloudError::AfiState { afi, state: state.to_owned(), message },
            }))
        }
        "unavailable" => {
            Ok(State::Failed(CloudError::AfiState { afi, state: state.to_owned(), message }))
        }
        _ => Err(said.unlike("the state pending, available, failed or unavailable")),
    }
}

/// Whether S3 has the object.
fn is_there(order: &Order, record: &Record) -> Result<bool, CloudError> {
    let values = object(&record.region, &record.bucket, &record.key);
    match run::run(&tools::HEAD.call(&values)?, order.limits) {
        Err(CloudError::Failed { said, .. }) if said.contains("(404)") => Ok(false),
        Err(error) => Err(error),
        Ok(_) => Ok(true),
    }
}

/// Deletes the object, and looks that it is gone.
fn delete(order: &Order, record: &Record, watch: Watch<'_>) -> Result<(), CloudError> {
    watch("deleting the object in S3");
    let values = object(&record.region, &record.bucket, &record.key);
    run::run(&tools::DELETE.call(&values)?, order.limits)?;
    if !is_there(order, record)? {
        return Ok(());
    }
    Err(CloudError::Object {
        bucket: record.bucket.clone(),
        key: record.key.clone(),
        found: "it is still there after its deletion".to_owned(),
        expected: "no object: it holds the secret of the image".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tarball_that_is_too_large_for_one_request_is_not_uploaded() {
        let dir = tempfile::tempdir().unwrap();
        let tarball = Checked {
            file: dir.path().join("x.tar"),
            digest: "11".repeat(32),
            dcp: "22".repeat(32),
            tag: "tag".to_owned(),
            bytes: MOST + 1,
        };
        let order = Order {
            region: "us-east-1".to_owned(),
            bucket: "bucket".to_owned(),
            prefix: "shef".to_owned(),
            name: "name".to_owned(),
            description: "text".to_owned(),
            interval: Duration::ZERO,
            wait: Duration::ZERO,
            limits: Limits::default(),
        };
        let error = make(&order, &tarball, &mut |_| {}).unwrap_err();
        assert_eq!(error.code(), "SHEF-CLD-044");
        assert!(error.to_string().contains("5000000001 bytes"), "{error}");
        assert!(!record_of(&tarball.file).exists(), "nothing was begun");
    }
}
