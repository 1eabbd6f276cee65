//! Writes a feed made by `feeds::sample`, gzipped when its name ends in .gz:
//! `cargo run --release -p feeds --example generate_feed -- FILE [SEED [MESSAGES]]`

use feeds::sample;
use flate2::{Compression, GzBuilder};
use std::error::Error;
use std::fs::File;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: generate_feed FILE [SEED [MESSAGES]]")?;
    let seed = arguments.next().map_or(Ok(sample::SEED), |text| text.parse())?;
    let messages = arguments.next().map_or(Ok(sample::MESSAGES), |text| text.parse())?;
    let bytes = sample::generate(seed, messages);
    let mut file = File::create(&path)?;
    if path.ends_with(".gz") {
        // No name and no time in the header: the same seed makes the same file.
        let mut encoder = GzBuilder::new().write(file, Compression::best());
        encoder.write_all(&bytes)?;
        encoder.finish()?;
    } else {
        file.write_all(&bytes)?;
    }
    Ok(())
}
