//! The processor: clock, hardware threads, and the price of every kind of work.

use super::ConfigError;
use super::layered::Layered;
use super::longest;
use sim::{EnergyPrices, Hops, LinePrices, Processor};
use stage::Price;
use units::{Hertz, Span};

/// The directory of shared lines has a bit for each core.
const CORES_MAX: u16 = 64;

pub(super) fn read(from: &Layered, name: &str) -> Result<Processor, ConfigError> {
    let clock_mhz = from.within("processor.clock_mhz", 1u32, 100_000)?;
    let clock = Hertz(u64::from(clock_mhz) * 1_000_000);
    // Parts of a cycle stand for cores that issue several instructions in one.
    let slot = |key: &str| -> Result<Span, ConfigError> {
        let cycles: f64 = from.within(key, 0.01, 1_000.0)?;
        match Span::from_nanos_f64(cycles * 1e3 / f64::from(clock_mhz)) {
            Span::ZERO => Err(from.refuse(key, format!("a picosecond or more of processor.clock_mhz = {clock_mhz}"))),
            slot if slot > longest::SLOT => {
                Err(from.refuse(key, format!("at most {} of processor.clock_mhz = {clock_mhz}", longest::SLOT)))
            }
            slot => Ok(slot),
        }
    };
    let (thread_slot, core_slot) = (slot("processor.thread_slot_cycles")?, slot("processor.core_slot_cycles")?);
    if thread_slot < core_slot {
        return Err(from.refuse("processor.thread_slot_cycles", "at least core_slot_cycles"));
    }
    let price = |what: &str| price(from, what, thread_slot);
    let prices: Result<_, _> = firmware::Work::KEYS.iter().map(|work| price(&format!("prices.{work}"))).collect();
    Ok(Processor {
        name: name.into(),
        clock,
        cores: from.within("processor.cores", 1, CORES_MAX)?,
        threads_per_core: from.within("processor.threads_per_core", 1, 64)?,
        thread_slot,
        core_slot,
        turn: price("turn")?,
        send: price("send")?,
        switch: price("switch")?,
        poll: plain_price(from, "poll", thread_slot)?,
        hops: Hops {
            same_core: from.get("processor.hops.same_core_ns")?,
            first: from.get("processor.hops.first_ns")?,
            further: from.get("processor.hops.further_ns")?,
            hardware: from.get("processor.hops.hardware_ns")?,
            publish: from.get("processor.hops.publish_ns")?,
        },
        lines: LinePrices {
            transfer: from.get("processor.lines.transfer_ns")?,
            memory: from.get("processor.lines.memory_ns")?,
            atomic: from.get("processor.lines.atomic_ns")?,
            held: lines_held(from)?,
        },
        prices: prices?,
        energy: energy(from)?,
    })
}

/// Known where an instruction's is.
fn energy(from: &Layered) -> Result<Option<EnergyPrices>, ConfigError> {
    let joules = |key: &str| Ok(from.within(&format!("processor.energy.{key}_nj"), 0.0, 1e6)? * 1e-9);
    let watts = |key: &str| from.within(&format!("processor.energy.{key}_w"), 0.0, 1e4);
    let prices = EnergyPrices {
        instruction: joules("instruction")?,
        transfer: joules("transfer")?,
        memory: joules("memory")?,
        core: watts("core")?,
        base: watts("base")?,
    };
    Ok((prices.instruction > 0.0).then_some(prices))
}

/// With the memory time that goes with each instruction.
fn price(from: &Layered, what: &str, slot: Span) -> Result<Price, ConfigError> {
    let Price { slots, stall } = plain_price(from, what, slot)?;
    let stall_per_slot: Span = from.get("processor.stall_per_slot_ns")?;
    Ok(Price { slots, stall: stall + stall_per_slot * slots })
}

/// As the file has it, of a thread that issues once in `slot`.
fn plain_price(from: &Layered, what: &str, slot: Span) -> Result<Price, ConfigError> {
    let key = format!("processor.{what}.slots");
    let slots = from.within(&key, 0, 100_000)?;
    if slot * slots > longest::WORK {
        return Err(from.refuse(&key, format!("at most {} of issue slots, which take {slot} each", longest::WORK)));
    }
    Ok(Price { slots, stall: from.get(&format!("processor.{what}.stall_ns"))? })
}

fn lines_held(from: &Layered) -> Result<u32, ConfigError> {
    let held: u32 = from.get("processor.lines.held")?;
    if held.is_power_of_two() && held <= 1 << 28 {
        return Ok(held);
    }
    Err(from.refuse("processor.lines.held", "a power of two up to 268435456"))
}

#[cfg(test)]
mod tests {
    use crate::config::Layers;

    /// With these values of keys of the processor, the time of a core's slot.
    fn core_slot(keys: &[(&str, &str)]) -> Result<u64, String> {
        let set = |layers: Layers, (key, value): &(&str, &str)| layers.set(&format!("processor.{key}={value}"));
        let layers = keys.iter().try_fold(Layers::new(), set).unwrap();
        layers.resolve().map(|resolved| resolved.processor.core_slot.picos()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_slot_takes_time() {
        let of = |clock_mhz: u32, [core, thread]: [&str; 2]| {
            let clock = clock_mhz.to_string();
            core_slot(&[("clock_mhz", &clock), ("core_slot_cycles", core), ("thread_slot_cycles", thread)])
        };
        let refused = |key| {
            format!("--set: processor.{key} is 0.01; expected a picosecond or more of processor.clock_mhz = 100000")
        };
        assert_eq!(of(100_000, ["0.01", "0.01"]), Err(refused("thread_slot_cycles")));
        assert_eq!(of(100_000, ["0.01", "1"]), Err(refused("core_slot_cycles")));
        assert_eq!([of(100_000, ["0.1", "0.1"]), of(1_000, ["0.01", "0.01"])], [Ok(1), Ok(10)]);
    }

    /// A key by itself is none of a time; with the clock it is.
    #[test]
    fn slots_and_their_time_are_bounded_together() {
        let slow = |cycles| [("clock_mhz", "1"), ("thread_slot_cycles", cycles)];
        assert_eq!(core_slot(&slow("50")), Ok(1_000_000));
        let slot = "processor.thread_slot_cycles is 51; expected at most 50 us of processor.clock_mhz = 1";
        assert_eq!(core_slot(&slow("51")), Err(format!("--set: {slot}")));

        let of = |slots| {
            let [clock, slot] = slow("50");
            core_slot(&[clock, slot, ("prices.nvmq_parse_command.slots", slots)])
        };
        assert_eq!(of("2000"), Ok(1_000_000));
        let work = "processor.prices.nvmq_parse_command.slots is 2001; expected at most 100 ms of issue slots";
        assert_eq!(of("2001"), Err(format!("--set: {work}, which take 50 us each")));
    }
}
