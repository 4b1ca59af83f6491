//! Pure appraisal of evidence against endorsements, reference values and a policy
