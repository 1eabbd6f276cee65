//! A hash of what a config says.

/// FNV-1a: the same in every build, which the standard hasher does not promise.
pub(super) struct Fnv(pub(super) u64);

impl Fnv {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn add(&mut self, text: &str) {
        for &byte in text.as_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
