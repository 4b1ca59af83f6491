//! Codes of the verifier service, in its answers and its start-up errors. Client and service share
//! them.

use crate::code::Code;

/// Codes of the service.
pub const CODES: &[Code] = &[
    Code::new(
        "SHEF-SVC-001",
        "configuration is not valid",
        "The text names line and column. `shef-verifierd check --config FILE` checks a file without starting.",
    ),
    Code::new(
        "SHEF-SVC-002",
        "key or certificate file cannot be used",
        "A file that the configuration names is missing, unreadable, not PEM, expired, or does not fit its key.",
    ),
    Code::new(
        "SHEF-SVC-003",
        "secret file is open to others",
        "A file of secrets must belong to the service alone: chmod 600 FILE.",
    ),
    Code::new(
        "SHEF-SVC-004",
        "store does not answer",
        "The database cannot be reached or refuses. Nothing was released; the same request can be sent again.",
    ),
    Code::new(
        "SHEF-SVC-005",
        "database was made by a newer version",
        "This program does not know the database's version and leaves it alone. Start the newer shef-verifierd, or restore a backup of this version.",
    ),
    Code::new(
        "SHEF-SVC-006",
        "key encryption key is not the one of this database",
        "The keys in the database are sealed under another KEK. Give the KEK file that belongs to it; without it the keys are lost.",
    ),
    Code::new(
        "SHEF-SVC-007",
        "address cannot be listened on",
        "Another program listens there, or the address is not one of this machine. Change `listen`.",
    ),
    Code::new(
        "SHEF-SVC-008",
        "something is there already",
        "Keys and certificates are never overwritten. Choose an empty folder, or another name.",
    ),
    Code::new(
        "SHEF-SVC-009",
        "backup cannot be made or restored",
        "The text says which file. restore never overwrites a database: move the old one away first.",
    ),
    Code::new(
        "SHEF-SVC-010",
        "receipts do not form the chain",
        "A receipt was changed, left out or put elsewhere, or the end is missing. The text names the first one that does not fit.",
    ),
    Code::new(
        "SHEF-SVC-011",
        "identity provider does not answer as it should",
        "The keys that verify the tokens of this [[oidc]] issuer cannot be fetched. The text says from which address, and why: network, certificate (oidc.ca), or another document than expected. Certificates and tokens of the configuration work all the same.",
    ),
    Code::new(
        "SHEF-SVC-012",
        "token that holds keys does not answer",
        "The token of [pkcs11] is not there, refuses the PIN, or has no key with this label; the text says which. Nothing was signed or released; the same request can be sent again. `shef-verifierd token-keys --config FILE` makes keys that are missing.",
    ),
    Code::new(
        "SHEF-SVC-020",
        "not found",
        "There is no such path, or nothing of this name for this tenant. GET of the collection (/v1/keys, /v1/policies) lists what there is.",
    ),
    Code::new(
        "SHEF-SVC-021",
        "method not allowed",
        "The path exists, but not for this method; the header Allow lists those it takes.",
    ),
    Code::new(
        "SHEF-SVC-022",
        "body is too large",
        "Requests are at most 64 KiB, CoRIMs 1 MiB, unless the configuration says otherwise.",
    ),
    Code::new(
        "SHEF-SVC-023",
        "request did not arrive in time",
        "The whole body must arrive within limits.body_seconds.",
    ),
    Code::new(
        "SHEF-SVC-024",
        "content type is not accepted",
        "The header Accept of the answer lists what this path takes.",
    ),
    Code::new(
        "SHEF-SVC-025",
        "no acceptable form of answer",
        "The header Accept of the request allows none of the forms that this path answers in.",
    ),
    Code::new(
        "SHEF-SVC-026",
        "request is malformed",
        "The text says which part: JSON of the documented form is expected; unknown members are refused.",
    ),
    Code::new(
        "SHEF-SVC-027",
        "not authenticated",
        "Show a client certificate of this service's CA, or a bearer token of the configuration.",
    ),
    Code::new(
        "SHEF-SVC-028",
        "role does not allow this",
        "The identity is known, but its role is too small for this request.",
    ),
    Code::new(
        "SHEF-SVC-029",
        "too many requests",
        "The tenant's rate is used up; Retry-After says when to come again.",
    ),
    Code::new(
        "SHEF-SVC-030",
        "too many requests at once",
        "The service works on as many requests as it may; Retry-After says when to come again.",
    ),
    Code::new(
        "SHEF-SVC-031",
        "fault in the service",
        "Not the caller's fault. The log has the details.",
    ),
    Code::new(
        "SHEF-SVC-032",
        "the log cannot be written",
        "The service releases no key without a line in its log (audit.required). Its operator must make room for the log, or restart its reader; then send the request again.",
    ),
    Code::new(
        "SHEF-SVC-033",
        "the database cannot do what the service needs",
        "To send the request again does not help. The log has the database's words: restore its tables, rights or a backup; `shef-verifierd check` finds most of it.",
    ),
    Code::new(
        "SHEF-SVC-040",
        "session is not valid",
        "The session token was changed, belongs to another tenant, or was made under another KEK. Ask for a new session.",
    ),
    Code::new(
        "SHEF-SVC-041",
        "session has expired",
        "Evidence came too late. Ask for a new session.",
    ),
    Code::new(
        "SHEF-SVC-042",
        "nonce has been used",
        "A nonce is taken once: this evidence was submitted before. Ask for a new session and new evidence.",
    ),
    Code::new(
        "SHEF-SVC-043",
        "evidence is denied",
        "`appraisal.checks` lists every check with what was expected and what is. `shef explain CODE` explains each.",
    ),
    Code::new(
        "SHEF-SVC-050",
        "policy is not valid",
        "The text names the place. Nothing was stored.",
    ),
    Code::new(
        "SHEF-SVC-051",
        "trust anchor is not valid",
        "A trust anchor is a self-signed P-256 root in DER (base64url) or PEM, with the kind of root of trust that it stands for.",
    ),
    Code::new(
        "SHEF-SVC-052",
        "reference values are not valid",
        "The CoRIM, or the reference values, are not of the form, or their signer is not one of the tenant's.",
    ),
    Code::new(
        "SHEF-SVC-053",
        "revocation is not valid",
        "kind is device (ueid), serial, certificate (SHA-256 of its DER), authority (SHA-256 of its public key), kernel, shell, image or vendor (digests); values are lower-case hexadecimal.",
    ),
    Code::new(
        "SHEF-SVC-054",
        "exists already with other content",
        "Names and versions are never overwritten. Choose another name, or rotate.",
    ),
    Code::new(
        "SHEF-SVC-055",
        "name is not valid",
        "Names are 1 to 64 characters: lower-case letters, digits, '-', '_' and '.', beginning with a letter or digit.",
    ),
    Code::new(
        "SHEF-SVC-056",
        "a dry run is under way",
        "A tenant has one dry run at a time; Retry-After says when to come again.",
    ),
    Code::new(
        "SHEF-SVC-057",
        "dry run took too long",
        "The text says how many records were held against the policy. Ask for fewer with ?limit=, or make the policy quicker.",
    ),
    Code::new(
        "SHEF-SVC-058",
        "tenant stores as much as it may",
        "The text says how much that is, and what limits.tenant_bytes allows. Nothing was stored. Remove reference values that are no longer needed, or have the limit raised; revocations have room of their own.",
    ),
    Code::new(
        "SHEF-SVC-059",
        "device was accepted and is not revoked",
        "Only a device that was never accepted, or that is revoked, is forgotten: with its record goes the highest security version that it has shown, which keeps older kernels out.",
    ),
    Code::new(
        "SHEF-SVC-060",
        "key is not valid",
        "The text says which member. A key has a layer, a policy and either a secret or the length of one to generate.",
    ),
    Code::new(
        "SHEF-SVC-061",
        "key is disabled",
        "The key, or this version of it, is disabled and is not released.",
    ),
    Code::new(
        "SHEF-SVC-062",
        "key is outside its window",
        "The key is released between not_before and not_after only.",
    ),
    Code::new(
        "SHEF-SVC-063",
        "key has been released as often as it may",
        "max_releases of this version is reached. Rotate the key, or raise the limit with a new version.",
    ),
    Code::new(
        "SHEF-SVC-064",
        "session is for another layer than the key",
        "An image key answers evidence of the kernel, a data key evidence of the Shield. Make the session for the key's layer.",
    ),
    Code::new(
        "SHEF-SVC-065",
        "session names no recipient",
        "A data key goes to a one-time key of the owner's: give `recipient` when the session is made; it is bound to the evidence through the nonce.",
    ),
    Code::new(
        "SHEF-SVC-066",
        "policy or version is in use",
        "A policy that a key names stays until that key is deleted or its versions are. The newest version of a key or policy goes with the whole of it: delete that, or add a newer version first.",
    ),
];
