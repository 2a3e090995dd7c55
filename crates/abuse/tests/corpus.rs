//! Every target over its committed corpus, and over random inputs that begin from it.

use abuse::{TARGETS, seeds};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// The corpus of a target, in the order of its names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder(target))
        .unwrap_or_else(|error| panic!("{target} has a corpus: {error}"))
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a file that can be read")).collect()
}

/// The committed seeds are those that the code makes; `FLASHLOOM_ACCEPT=1` writes them.
#[test]
fn the_corpus_has_every_seed_as_it_is_made() {
    for (target, name, seed) in seeds() {
        assert!(TARGETS.iter().any(|known| known.name == target), "{target} is no target");
        let path = folder(target).join(name);
        if std::env::var_os("FLASHLOOM_ACCEPT").is_some() {
            fs::create_dir_all(folder(target)).expect("a folder");
            fs::write(&path, &seed).expect("a file");
        }
        assert!(fs::read(&path).is_ok_and(|held| held == seed), "{} is another seed", path.display());
    }
}

#[test]
fn no_input_of_the_corpus_finds_a_fault() {
    for target in TARGETS {
        let inputs = corpus(target.name);
        assert!(inputs.len() > 1, "{} has a corpus", target.name);
        inputs.iter().for_each(|input| (target.run)(input));
    }
}

/// Bytes are changed, cut out, doubled and put in from another input, as fuzzers do.
fn mutate(random: &mut Xoshiro256PlusPlus, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut input = inputs[random.random_range(0..inputs.len())].clone();
    for _ in 0..random.random_range(1..6) {
        let (from, to) = (random.random_range(0..=input.len()), random.random_range(0..=input.len()));
        let range = from.min(to)..from.max(to).min(from.min(to) + 64);
        match random.random_range(0..5) {
            0 => drop(input.drain(range)),
            1 => {
                let copy = input[range].to_vec();
                input.splice(to..to, copy);
            }
            2 => {
                let other = &inputs[random.random_range(0..inputs.len())];
                let begin = random.random_range(0..=other.len());
                let part = &other[begin..other.len().min(begin + 96)];
                input.splice(to..to, part.iter().copied());
            }
            3 => range.for_each(|at| input[at] = random.random()),
            _ => {
                let value = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)];
                input.iter_mut().skip(from).take(random.random_range(1..9)).for_each(|byte| *byte = value);
            }
        }
    }
    input.truncate(16 << 10);
    input
}

/// `FLASHLOOM_INPUTS` says how many for each target, instead of 3,000.
#[test]
fn random_inputs_find_no_fault() {
    let wanted = std::env::var("FLASHLOOM_INPUTS").ok();
    let count = wanted.map_or(3_000, |text| text.parse().expect("FLASHLOOM_INPUTS is a number"));
    for (target, seed) in TARGETS.iter().zip(21..) {
        let inputs = corpus(target.name);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..count {
            (target.run)(&mutate(&mut random, &inputs));
        }
        for _ in 0..300 {
            let length = random.random_range(0..512);
            let input: Vec<u8> = (0..length).map(|_| random.random()).collect();
            (target.run)(&input);
        }
    }
}
