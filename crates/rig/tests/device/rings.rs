//! What the plan's bounds cost in memory: the rings between threads have room for all that is admitted.

use crate::small::Small;
use firmware::Message;
use firmware::architecture::ARCHITECTURES;
use rig::Layout;

#[test]
fn the_rings_of_a_small_device_are_small() {
    for &architecture in ARCHITECTURES {
        let small = Small { architecture, ..Small::default() };
        let (drawing, _) = small.device().draw().expect("it can be drawn");
        for threads in [1, 2, 4, 8] {
            let homes = Layout::on(threads).homes(drawing.blueprint.parts(), drawing.blueprint.edges());
            let crossing = drawing.blueprint.edges().iter().filter(|edge| {
                let [from, to] = [edge.from, edge.to].map(|stage| homes[stage.index()]);
                from != to
            });
            let letters: usize = crossing.map(|edge| edge.at_most as usize).sum();
            let bytes = letters * (size_of::<Message>() + size_of::<u64>());
            assert!(bytes < 8 << 20, "{} on {threads} threads: {letters} letters, {bytes} B", architecture.name());
            assert_eq!(letters == 0, threads == 1);
        }
    }
}
