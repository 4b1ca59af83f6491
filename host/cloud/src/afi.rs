//! From the tarball to an image (AFI) at AWS: upload, creation, waiting, and the end of the object in
//! S3, which holds the secret inside of the checkpoint.
//!
//! Each step is recorded beside the tarball. The client token of the request is the tarball's digest:
//! a command that was killed after the request gets the same image again. A request after an image
//! that failed has another token, as AWS answers one token with one image.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::error::AFI_FAILURES;
use crate::run::{self, Limits, Said};
use crate::tarball::Checked;
use crate::tools::{self, Call};
use crate::{CloudError, Step, Watch, place};

/// Most bytes of an object that S3 takes in one request.
const MOST: u64 = 5_000_000_000;
/// Failed connections in a row that the waiting bears.
const LOST: u32 = 10;
/// Looks in a row at an image that AWS does not know: a new one may be unknown for a moment.
const UNKNOWN: u32 = 3;

/// AWS's code for an image that it does not have.
const NOT_FOUND: &str = "(InvalidFpgaImageID.NotFound)";

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
    /// Images of this tarball that failed before.
    pub failed: u32,
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
    /// Place of AWS's logs.
    pub logs: String,
}

impl Order {
    /// Checks the names of region, bucket and prefix, before any work: by the rules of S3 for buckets
    /// and for keys without special characters.
    ///
    /// # Errors
    /// SHEF-CLD-054.
    pub fn names(region: &str, bucket: &str, prefix: &str) -> Result<(), CloudError> {
        let wrong = |what, found: &str, expected| {
            Err(CloudError::Value { what, found: found.to_owned(), expected })
        };
        let low = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let both = |text: &str| {
            text.bytes().next().is_some_and(low) && text.bytes().next_back().is_some_and(low)
        };
        if !both(region) || !region.bytes().all(|c| low(c) || c == b'-') {
            return wrong("--region", region, "a name as us-east-1");
        }
        let parts = || bucket.split('.');
        let number =
            parts().count() == 4 && parts().all(|it| it.bytes().all(|c| c.is_ascii_digit()));
        if !(3..=63).contains(&bucket.len())
            || !parts().all(|part| both(part) && part.bytes().all(|c| low(c) || c == b'-'))
            || number
        {
            let expected =
                "a bucket's name: 3 to 63 characters of a-z, 0-9, - and ., without s3://";
            return wrong("--bucket", bucket, expected);
        }
        let key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let part = |part: &str| !part.is_empty() && !part.starts_with('-') && part.chars().all(key);
        if prefix.len() > 200 || !prefix.split('/').all(part) {
            let expected = "names of a-z, A-Z, 0-9, -, _ and ., with / between them";
            return wrong("--prefix", prefix, expected);
        }
        Ok(())
    }

    /// Name of the object for a tarball.
    fn key(&self, tarball: &Checked) -> String {
        format!("{}/{}-{}.tar", self.prefix, tarball.tag, &tarball.digest[..12])
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

    fn create(&self, tarball: &Checked, key: &str, failed: u32) -> Result<Call, CloudError> {
        let token = match failed {
            0 => tarball.digest.clone(),
            n => hex::encode(Sha256::digest(format!("{} {n}", tarball.digest))),
        };
        tools::CREATE_AFI.call(&[
            ("name", &self.name),
            ("description", &self.description),
            ("bucket", &self.bucket),
            ("key", key),
            ("logs", &logs(key)),
            ("token", &token),
            ("region", &self.region),
        ])
    }

    /// Each thing that would be done. A program that looks at the image is repeated.
    ///
    /// # Errors
    /// SHEF-CLD-044, SHEF-CLD-054, SHEF-CLD-055, SHEF-CLD-057.
    pub fn plan(&self, tarball: &Checked) -> Result<Vec<Step>, CloudError> {
        let record = Record::of(tarball)?;
        let mut calls = Vec::new();
        if record.afi.is_none() {
            fits(tarball)?;
        }
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
            calls.push(self.create(tarball, &key, record.failed)?);
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
        let gone = [tools::DELETE.call(&kept)?, tools::HEAD.call(&kept)?];
        let mut steps: Vec<Step> = calls.into_iter().map(Step::from).collect();
        if record.deleted {
            steps.push(tools::HEAD.call(&kept)?.into());
            steps.extend(gone.map(|call| call.only_if("the object is there again")));
        } else {
            steps.extend(gone.map(Step::from));
        }
        Ok(steps)
    }
}

/// Prefix of AWS's logs for an object: beside it.
fn logs(key: &str) -> String {
    format!("{}/logs", key.rsplit_once('/').map_or("", |(prefix, _)| prefix))
}

/// Checks that S3 takes the tarball in one request.
fn fits(tarball: &Checked) -> Result<(), CloudError> {
    if tarball.bytes <= MOST {
        return Ok(());
    }
    let (file, bytes) = (tarball.file.clone(), tarball.bytes);
    Err(CloudError::TooLarge { file, bytes, most: MOST })
}

fn object<'a>(region: &'a str, bucket: &'a str, key: &'a str) -> [(&'static str, &'a str); 3] {
    [("region", region), ("bucket", bucket), ("key", key)]
}

/// The record of a tarball.
fn record_of(tarball: &Path) -> PathBuf {
    tarball.with_extension("afi.json")
}

impl Record {
    /// The record of this tarball; a new one if there is no file. Another content names an object
    /// that may be in S3, with the secret.
    ///
    /// # Errors
    /// SHEF-CLD-055, SHEF-CLD-057.
    pub fn of(tarball: &Checked) -> Result<Self, CloudError> {
        let path = record_of(&tarball.file);
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::new(tarball)),
            Err(e) => return Err(CloudError::io("read", &path)(e)),
            Ok(bytes) => bytes,
        };
        let wrong = |found: String| Err(CloudError::AfiRecord { file: path.clone(), found });
        match serde_json::from_slice::<Self>(&bytes) {
            Err(e) => wrong(e.to_string()),
            Ok(record) if record.tarball != tarball.digest => {
                wrong(format!("it belongs to the tarball with SHA-256 {}", record.tarball))
            }
            Ok(record) if record.afi.is_some() != record.agfi.is_some() => {
                wrong("it has one id of the image".to_owned())
            }
            Ok(record) => Ok(record),
        }
    }

    fn new(tarball: &Checked) -> Self {
        Self { tarball: tarball.digest.clone(), ..Self::default() }
    }

    /// Place of AWS's logs, once an image was requested.
    #[must_use]
    pub fn logs(&self) -> String {
        format!("s3://{}/{}/", self.bucket, logs(&self.key))
    }

    /// Whether something may be at AWS for this record.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.holds_object() || self.afi.is_some()
    }

    /// What is at AWS for this record, and the way on.
    #[must_use]
    pub fn remains(&self) -> String {
        let mut all = Vec::new();
        let object = format!("s3://{}/{}", self.bucket, self.key);
        if let Some(afi) = &self.afi {
            let state = if self.available { "available" } else { "requested" };
            all.push(format!("{afi} in {} is {state}", self.region));
        }
        if self.holds_object() {
            let is = if self.uploaded { "is" } else { "may be" };
            all.push(format!("{object} {is} in S3, with the secret of the image"));
            all.push("the same command again continues, and deletes it at the end".to_owned());
            all.push(format!("to give up, `aws s3 rm {object} --region {}`", self.region));
        } else if self.afi.is_some() {
            all.push("no object is in S3; the same command again writes the lock file".to_owned());
        } else {
            all.push("nothing is at AWS; the same command again begins".to_owned());
        }
        all.join("; ")
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
        let found = "it has no id of the image".to_owned();
        return Err(CloudError::AfiRecord { file: record_of(&tarball.file), found });
    };
    if !record.available {
        match wait(order, &record, &afi, watch)? {
            State::Failed(error) => {
                // Another request uploads the tarball again.
                delete(order, &record, watch)?;
                let failed = record.failed + 1;
                Record { failed, ..Record::new(tarball) }.write(tarball)?;
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
    let logs = record.logs();
    Ok(Made { afi, agfi, region: record.region, logs })
}

/// Uploads the tarball and requests the image.
fn request(
    order: &Order,
    tarball: &Checked,
    record: &mut Record,
    watch: Watch<'_>,
) -> Result<(), CloudError> {
    fits(tarball)?;
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
            failed: record.failed,
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
    let said = run::run(&order.create(tarball, &key, record.failed)?, order.limits)?;
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
fn wait(order: &Order, record: &Record, afi: &str, watch: Watch<'_>) -> Result<State, CloudError> {
    let begun = Instant::now();
    let (mut lost, mut unknown) = (0, 0);
    loop {
        match look(order, record, afi) {
            Ok(State::Pending) => (lost, unknown) = (0, 0),
            Err(CloudError::Failed { said, .. }) if said.contains(NOT_FOUND) => {
                unknown += 1;
                if unknown == UNKNOWN {
                    let (afi, logs) = (afi.to_owned(), record.logs());
                    let state = "unknown at AWS".to_owned();
                    let error = CloudError::AfiState { afi, state, message: said, logs };
                    return Ok(State::Failed(error));
                }
                watch(&format!("AWS does not know {afi}, looking again ({unknown} of {UNKNOWN})"));
            }
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

fn look(order: &Order, record: &Record, afi: &str) -> Result<State, CloudError> {
    let call = tools::DESCRIBE_AFI.call(&[("afi", afi), ("region", &record.region)])?;
    let said = run::run(&call, order.limits)?;
    let answer = said.json("JSON with FpgaImages")?;
    let image = &answer["FpgaImages"][0];
    let state = image["State"]["Code"].as_str().unwrap_or_default();
    if image["FpgaImageId"].as_str() != Some(afi) {
        return Err(said.unlike("one image of FpgaImages, with the id of the request"));
    }
    let message = image["State"]["Message"].as_str().unwrap_or_default();
    let (afi, message) = (afi.to_owned(), message.chars().take(300).collect::<String>());
    let logs = record.logs();
    match state {
        "pending" => Ok(State::Pending),
        "available" => Ok(State::Available),
        "failed" => {
            let name = message.split(':').next().unwrap_or_default().trim();
            let known = AFI_FAILURES.iter().find(|failure| failure.name == name);
            Ok(State::Failed(match known {
                Some(failure) => CloudError::Afi { afi, failure, message, logs },
                None => CloudError::AfiState { afi, state: state.to_owned(), message, logs },
            }))
        }
        "unavailable" => {
            let state = state.to_owned();
            Ok(State::Failed(CloudError::AfiState { afi, state, message, logs }))
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
    fn names_are_checked_before_any_work() {
        let code = |region, bucket, prefix| {
            Order::names(region, bucket, prefix).err().map(|error| error.to_string())
        };
        assert_eq!(code("us-east-1", "my-bucket.of.mine", "shef/a_b"), None);
        for region in ["", "US-East-1", "us east", "-us"] {
            assert!(code(region, "bucket", "shef").unwrap().contains("--region"), "{region}");
        }
        let long = "a".repeat(64);
        for bucket in
            ["ab", &long, "My-Bucket", "a_b", "-ab", "ab-", "a..b", "a.-b", "10.0.0.1", "s3://ab"]
        {
            assert!(code("us-east-1", bucket, "shef").unwrap().contains("--bucket"), "{bucket}");
        }
        for prefix in ["", "/a", "a/", "a//b", "a,Key=b", "a b", "-a"] {
            assert!(code("us-east-1", "bucket", prefix).unwrap().contains("--prefix"), "{prefix}");
        }
    }

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
