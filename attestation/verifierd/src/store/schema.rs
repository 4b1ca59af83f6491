//! One schema for both databases, and its migrations. `{blob}` is the type of byte strings.

/// Steps from an empty database to the newest version; append only.
pub const MIGRATIONS: &[&str] =
    &[FIRST, HIGHEST_SVN, EVENTS, TO_HOST, REMEMBERED, CALLER, UNPROVEN, GONE, ERASED];

/// The oldest version whose programs may serve beside this schema, one release back: its steps since
/// only add what those programs leave alone.
pub const BESIDE: i64 = 7;

/// How many times a tenant was erased: replicas whose configuration still has it add nothing to it.
const ERASED: &str = "ALTER TABLE tenant ADD COLUMN erased BIGINT NOT NULL DEFAULT 0;";

/// The highest version of each deleted key and policy: receipts and results name versions, so no
/// number is used twice.
const GONE: &str = "
CREATE TABLE gone (
    tenant TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, version BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, name)
);
";

/// An index that finds evidence that no device has signed for its nonce: it is stored once, however
/// often it is sent.
const UNPROVEN: &str = "
CREATE INDEX IF NOT EXISTS appraisal_unproven_evidence ON appraisal (tenant, sha256, caller, code) WHERE genuine = 0;
";

/// The caller of an appraisal, and an index by which records are counted for each caller.
const CALLER: &str = "
ALTER TABLE appraisal ADD COLUMN caller TEXT NOT NULL DEFAULT '';
CREATE INDEX appraisal_caller ON appraisal (tenant, genuine, caller, time, id);
";

/// The highest version of each CoRIM, which must not be forgotten; a mark on evidence that no
/// device has signed, which may be; signed statements about deleted receipts; and the chain of
/// events.
const REMEMBERED: &str = "
CREATE TABLE corim_version (
    tenant TEXT NOT NULL, signer TEXT NOT NULL, id TEXT NOT NULL, version BIGINT NOT NULL,
    PRIMARY KEY (tenant, signer, id)
);
ALTER TABLE appraisal ADD COLUMN genuine BIGINT NOT NULL DEFAULT 1;
ALTER TABLE appraisal ADD COLUMN sha256 {blob} NOT NULL DEFAULT '';
CREATE INDEX appraisal_unproven ON appraisal (tenant, time, id) WHERE genuine = 0;
ALTER TABLE tenant ADD COLUMN kept_signed {blob} NOT NULL DEFAULT '';
ALTER TABLE event ADD COLUMN digest {blob} NOT NULL DEFAULT '';
";

/// Resources are keys, named by their path; 1: it may go to any key of the host. The table
/// `resource` is sealed under other parts; its rows become keys once the KEK is available.
const TO_HOST: &str = "ALTER TABLE key_name ADD COLUMN to_host BIGINT NOT NULL DEFAULT 0;";

/// The log of changes.
const EVENTS: &str = "
CREATE TABLE event (
    tenant TEXT NOT NULL, seq BIGINT NOT NULL, time BIGINT NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL, action TEXT NOT NULL,
    what TEXT NOT NULL,
    PRIMARY KEY (tenant, seq)
);
";

/// The highest security version that a known kernel of the device has shown.
const HIGHEST_SVN: &str = "
ALTER TABLE device ADD COLUMN highest_svn BIGINT NOT NULL DEFAULT 0;
UPDATE device SET highest_svn = kernel_svn WHERE verdict = 'accepted';
";

const FIRST: &str = "
CREATE TABLE tenant (
    name TEXT PRIMARY KEY,
    generation BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    head {blob} NOT NULL,
    kept_seq BIGINT NOT NULL,
    kept_head {blob} NOT NULL,
    swept BIGINT NOT NULL
);
CREATE TABLE anchor (
    tenant TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, debug BIGINT NOT NULL, certificate {blob} NOT NULL,
    created BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE TABLE signer (
    tenant TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL, created BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE TABLE corim (
    tenant TEXT NOT NULL, id TEXT NOT NULL, media_type TEXT NOT NULL, content {blob} NOT NULL, active BIGINT NOT NULL,
    created BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE TABLE policy (
    tenant TEXT NOT NULL, name TEXT NOT NULL, version BIGINT NOT NULL, media_type TEXT NOT NULL, content {blob} NOT NULL,
    sha256 {blob} NOT NULL, created BIGINT NOT NULL,
    PRIMARY KEY (tenant, name, version)
);
CREATE TABLE revocation (
    tenant TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, reason TEXT NOT NULL, created BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, value)
);
CREATE TABLE device (
    tenant TEXT NOT NULL, ueid {blob} NOT NULL, first_seen BIGINT NOT NULL, last_seen BIGINT NOT NULL, last_appraised BIGINT NOT NULL,
    verdict TEXT NOT NULL, target TEXT NOT NULL, kernel_svn BIGINT NOT NULL,
    PRIMARY KEY (tenant, ueid)
);
CREATE INDEX device_age ON device (tenant, last_appraised);
CREATE TABLE appraisal (
    tenant TEXT NOT NULL, id {blob} NOT NULL, time BIGINT NOT NULL, layer TEXT NOT NULL, verdict TEXT NOT NULL, code TEXT NOT NULL,
    policy TEXT NOT NULL, ueid {blob} NOT NULL, nonce {blob} NOT NULL, evidence {blob} NOT NULL, report TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX appraisal_time ON appraisal (tenant, time);
CREATE TABLE used (
    tenant TEXT NOT NULL, nonce {blob} NOT NULL, expires BIGINT NOT NULL, result TEXT,
    PRIMARY KEY (tenant, nonce)
);
CREATE INDEX used_expires ON used (expires);
CREATE TABLE key_name (
    tenant TEXT NOT NULL, name TEXT NOT NULL, layer TEXT NOT NULL, disabled BIGINT NOT NULL, version BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE TABLE key_version (
    tenant TEXT NOT NULL, name TEXT NOT NULL, version BIGINT NOT NULL, sealed {blob} NOT NULL,
    policy TEXT NOT NULL, policy_version BIGINT NOT NULL,
    max_releases BIGINT NOT NULL, released BIGINT NOT NULL, not_before BIGINT NOT NULL, not_after BIGINT NOT NULL,
    disabled BIGINT NOT NULL, created BIGINT NOT NULL,
    PRIMARY KEY (tenant, name, version)
);
CREATE TABLE released (
    tenant TEXT NOT NULL, name TEXT NOT NULL, version BIGINT NOT NULL, evidence {blob} NOT NULL,
    recipient {blob} NOT NULL, box {blob} NOT NULL, seq BIGINT NOT NULL, expires BIGINT NOT NULL,
    PRIMARY KEY (tenant, name, version, evidence)
);
CREATE INDEX released_expires ON released (expires);
CREATE TABLE receipt (
    tenant TEXT NOT NULL, seq BIGINT NOT NULL, time BIGINT NOT NULL, name TEXT NOT NULL, content {blob} NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX receipt_name ON receipt (tenant, name, seq);
CREATE TABLE resource (
    tenant TEXT NOT NULL, path TEXT NOT NULL, sealed {blob} NOT NULL, created BIGINT NOT NULL,
    PRIMARY KEY (tenant, path)
);
";
