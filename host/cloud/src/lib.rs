//! From the sources of a custom logic to its image on an AWS F2 instance: what `shef cloud` does
//! around AWS's own programs.
