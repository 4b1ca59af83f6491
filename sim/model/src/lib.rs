//! Bit-exact functional model of the Shield
