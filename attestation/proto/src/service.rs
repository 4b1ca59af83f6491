//! Codes of the verifier service, in its answers and its start-up errors. Client and service share
//! them.

use crate::code;

crate::coded! {
    /// Kinds of errors of the verifier service. A number in brackets is the HTTP status of answers;
    /// a kind without one happens outside a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Kind {
        /// Invalid configuration file.
        Config = "SHEF-SVC-001": "configuration is not valid",
            "The text names line and column. `shef-verifierd check --config FILE` checks a file without starting.",
        /// Unusable file of keys or certificates.
        Material = "SHEF-SVC-002": [503] "key or certificate file cannot be used",
            "A file that the configuration names is missing, unreadable, not PEM, expired, or does not fit its key.",
        /// A secret that others can read.
        Permissions = "SHEF-SVC-003": "secret file is open to others",
            "A file of secrets must belong to the service alone: chmod 600 FILE. Run as root, the service and its commands also refuse a database below a folder that another user can change: the text says which; run them as that user.",
        /// The database does not open.
        Store = "SHEF-SVC-004": [503] "store does not answer",
            "The database cannot be reached or refuses. Nothing was released; the same request can be sent again.",
        /// A database of a newer version.
        NewerStore = "SHEF-SVC-005": "database was made by a newer version",
            "This program does not know the database's version and leaves it alone. Start the newer shef-verifierd, or restore a backup of this version.",
        /// The keys are sealed under another KEK.
        WrongKek = "SHEF-SVC-006": [503] "key encryption key is not the one of this database",
            "The keys in the database are sealed under another KEK. Give the KEK file that belongs to it; without it the keys are lost.",
        /// The address cannot be used.
        Listen = "SHEF-SVC-007": "address cannot be listened on",
            "Another program listens there, or the address is not one of this machine. Change `listen`.",
        /// `init` would overwrite something.
        Exists = "SHEF-SVC-008": "something is there already",
            "Keys and certificates are never overwritten. Choose an empty folder, or another name.",
        /// Backup or restore failed.
        Backup = "SHEF-SVC-009": "backup cannot be made or restored",
            "The text says which file. restore never overwrites a database: move the old one away first.",
        /// Broken chain of receipts.
        Audit = "SHEF-SVC-010": "receipts do not form the chain",
            "A receipt was changed, left out or put elsewhere, or the end is missing. The text names the first one that does not fit.",
        /// An identity provider does not answer as it should.
        Provider = "SHEF-SVC-011": [503] "identity provider does not answer as it should",
            "The keys that verify the tokens of this [[oidc]] issuer cannot be fetched. The text says from which address, and why: network, certificate (oidc.ca), or another document than expected. Certificates and tokens of the configuration work all the same.",
        /// The token that holds keys does not answer, or refuses.
        Vault = "SHEF-SVC-012": [503] "token that holds keys does not answer",
            "The token of [pkcs11] is not there, or has no key with this label; the text says which. Nothing was signed or released; the same request can be sent again. `shef-verifierd token-keys --config FILE` makes keys that are missing.",
        /// The token does not take the PIN.
        Pin = "SHEF-SVC-013": [503] "PIN of the token that holds keys is wrong",
            "The token of [pkcs11] refuses the PIN in the file of pkcs11.pin_file, or is about to lock, or is locked; the text says which. Correct the file, and start the service: the same PIN is not tried again, because each attempt brings the token nearer to its lock.",
        /// A replica that is not like the others.
        Differs = "SHEF-SVC-014": [503] "replica differs from the others of its database",
            "All replicas of a database need the same keys and settings; the text says what differs. Give this replica what the others have, and send SIGHUP.",
        /// A database of an older version, which is only read.
        OlderStore = "SHEF-SVC-015": "database was made by an older version",
            "A command that only reads does not extend the schema. Start the service of this version once, which does, or use the command of the version that made it.",

        /// No such path or object.
        NotFound = "SHEF-SVC-020": [404] "not found",
            "There is no such path, or nothing of this name for this tenant. GET of the collection (/v1/keys, /v1/policies) lists what there is.",
        /// Method not allowed.
        Method = "SHEF-SVC-021": [405] "method not allowed",
            "The path exists, but not for this method; the header Allow lists those it takes.",
        /// Body exceeds the limit.
        TooLarge = "SHEF-SVC-022": [413] "body is too large",
            "Requests are at most 64 KiB, CoRIMs 1 MiB, unless the configuration says otherwise.",
        /// Body arrives too slowly.
        Slow = "SHEF-SVC-023": [408] "request did not arrive in time",
            "The whole body must arrive within limits.body_seconds.",
        /// Unsupported content type.
        MediaType = "SHEF-SVC-024": [415] "content type is not accepted",
            "The header Accept of the answer lists what this path takes.",
        /// No acceptable media type.
        NotAcceptable = "SHEF-SVC-025": [406] "no acceptable form of answer",
            "The header Accept of the request allows none of the forms that this path answers in.",
        /// Malformed request.
        Malformed = "SHEF-SVC-026": [400] "request is malformed",
            "The text says which part: JSON of the documented form is expected; unknown members are refused.",
        /// Missing or unknown credentials.
        Unauthenticated = "SHEF-SVC-027": [401] "not authenticated",
            "Show a client certificate of this service's CA, or a bearer token of the configuration.",
        /// Missing right.
        Forbidden = "SHEF-SVC-028": [403] "role does not allow this",
            "The identity is known, but its role is too small for this request.",
        /// A tenant exceeds its rate.
        RateLimited = "SHEF-SVC-029": [429] "too many requests",
            "The tenant's rate is used up; Retry-After says when to come again.",
        /// Too many concurrent requests.
        Busy = "SHEF-SVC-030": [503] "too many requests at once",
            "The service works on as many requests as it may; Retry-After says when to come again.",
        /// Internal error.
        Internal = "SHEF-SVC-031": [500] "fault in the service",
            "Not the caller's fault. The log has the details.",
        /// The log cannot be written, and it is required.
        Log = "SHEF-SVC-032": [503] "the log cannot be written",
            "The service releases no key without a line in its log (audit.required). Its operator must make room for the log, or restart its reader; then send the request again.",
        /// The database is damaged, read-only, or lacks what the service needs.
        Broken = "SHEF-SVC-033": [500] "the database cannot do what the service needs",
            "To send the request again does not help. The log has the database's words: restore its tables, rights or a backup; `shef-verifierd check` finds most of it.",

        /// Session token not from this service.
        Session = "SHEF-SVC-040": [400] "session is not valid",
            "The session token was changed, belongs to another tenant, or was made under another KEK. Ask for a new session.",
        /// Session token expired.
        SessionExpired = "SHEF-SVC-041": [410] "session has expired",
            "Evidence came too late. Ask for a new session.",
        /// The nonce was used before.
        NonceUsed = "SHEF-SVC-042": [409] "nonce has been used",
            "A nonce is taken once: this evidence was submitted before, or the session is from before a restore of the database. Ask for a new session and new evidence.",
        /// The appraisal denies the evidence.
        Denied = "SHEF-SVC-043": [422] "evidence is denied",
            "`appraisal.checks` lists every check with what was expected and what is. `shef explain CODE` explains each.",

        /// Unusable policy.
        Policy = "SHEF-SVC-050": [422] "policy is not valid",
            "The text names the place. Nothing was stored.",
        /// Unusable trust anchor.
        Anchor = "SHEF-SVC-051": [422] "trust anchor is not valid",
            "A trust anchor is a self-signed P-256 root in DER (base64url) or PEM, with the kind of root of trust that it stands for.",
        /// Unusable reference values.
        Corim = "SHEF-SVC-052": [422] "reference values are not valid",
            "The CoRIM, or the reference values, are not of the form, or their signer is not one of the tenant's.",
        /// Unusable revocation.
        Revocation = "SHEF-SVC-053": [422] "revocation is not valid",
            "kind is device (ueid), serial, certificate (SHA-256 of its DER), authority (SHA-256 of its public key), kernel, shell, image or vendor (digests); values are lower-case hexadecimal.",
        /// The name is taken.
        Conflict = "SHEF-SVC-054": [409] "exists already with other content",
            "Names and versions are never overwritten. Choose another name, or rotate.",
        /// Malformed name.
        Name = "SHEF-SVC-055": [422] "name is not valid",
            "Names are 1 to 64 characters: lower-case letters, digits, '-', '_' and '.', beginning with a letter or digit.",
        /// Another dry run is in progress.
        DryRun = "SHEF-SVC-056": [429] "a dry run is under way",
            "A tenant has one dry run at a time; Retry-After says when to come again.",
        /// The dry run took too long.
        DryRunTime = "SHEF-SVC-057": [503] "dry run took too long",
            "The text says how many records were held against the policy. Ask for fewer with ?limit=, or make the policy quicker.",
        /// The tenant's storage is full.
        Full = "SHEF-SVC-058": [409] "tenant stores as much as it may",
            "The text says how much that is, and what limits.tenant_bytes allows. Nothing was stored. Remove reference values that are no longer needed, or have the limit raised; revocations have room of their own.",
        /// The device must not be forgotten.
        Known = "SHEF-SVC-059": [409] "device was accepted and is not revoked",
            "Only a device that was never accepted, or that is revoked, is forgotten: with its record goes the highest security version that it has shown, which keeps older kernels out.",

        /// Unusable key description.
        Key = "SHEF-SVC-060": [422] "key is not valid",
            "The text says which member. A key has a layer, a policy and either a secret or the length of one to generate.",
        /// The key is disabled.
        KeyDisabled = "SHEF-SVC-061": [409] "key is disabled",
            "The key, or this version of it, is disabled and is not released.",
        /// Outside the key's validity window.
        KeyWindow = "SHEF-SVC-062": [409] "key is outside its window",
            "The key is released between not_before and not_after only.",
        /// The key's release limit is reached.
        KeyExhausted = "SHEF-SVC-063": [409] "key has been released as often as it may",
            "max_releases of this version is reached. Rotate the key, or raise the limit with a new version.",
        /// The session is for another layer.
        Layer = "SHEF-SVC-064": [409] "session is for another layer than the key",
            "An image key answers evidence of the kernel, a data key evidence of the Shield. Make the session for the key's layer.",
        /// The session has no recipient.
        Recipient = "SHEF-SVC-065": [409] "session names no recipient",
            "A data key goes to a one-time key of the owner's: give `recipient` when the session is made; it is bound to the evidence through the nonce.",
        /// The policy, or the version of a key or policy, is in use.
        InUse = "SHEF-SVC-066": [409] "policy or version is in use",
            "A policy that a key names stays until that key is deleted or its versions are. The newest version of a key or policy goes with the whole of it: delete that, or add a newer version first.",
        /// The tenant was erased.
        Erased = "SHEF-SVC-067": [403] "tenant was erased",
            "`shef-verifierd erase` deleted everything of this tenant while this replica still had it in its configuration: nothing is added to it. Remove its [[tenant]] there and send SIGHUP. To begin the tenant anew, restart the replicas that shall have it.",
    }
}

impl Kind {
    fn entry(self) -> Option<&'static code::Code> {
        code::find(Self::CODES, self.code())
    }

    /// HTTP status of an answer; 0 for errors that happen outside a request.
    #[must_use]
    pub fn status(self) -> u16 {
        self.entry().and_then(|code| code.status).unwrap_or(0)
    }

    /// One-line summary.
    #[must_use]
    pub fn summary(self) -> &'static str {
        self.entry().map_or("", |code| code.summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        for pair in Kind::CODES.windows(2) {
            assert!(pair[0].id < pair[1].id, "{}", pair[1].id);
        }
        for code in Kind::CODES {
            assert!(
                code.id.starts_with("SHEF-SVC-")
                    && !code.summary.is_empty()
                    && code.help.len() > 20
                    && code.status.is_none_or(|status| (400..600).contains(&status)),
                "{}",
                code.id
            );
        }
        assert_eq!((Kind::Busy.status(), Kind::Config.status()), (503, 0));
    }
}
