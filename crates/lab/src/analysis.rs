//! Write amplification as analysis gives it, to set beside what runs measure.

/// Pages programmed for each page written, under writes that are uniformly random over `1 / ratio` of the pages of a drive that always
/// reclaims the group with the fewest valid pages, where a group has `pages` pages (Desnoyers, SYSTOR 2012).
///
/// In the steady state every group goes through as many valid pages as it has, from all of them down to those of a victim, and stays with
/// `k` valid pages for a time that is as `1 / k`. So with victims of `v` valid pages
///
/// ```text
/// groups         as  sum over k = v + 1 .. pages of 1 / k      ~  ln((pages + 1/2) / (v + 1/2))
/// valid pages    as  sum over k = v + 1 .. pages of k / k      =  pages - v
/// ratio          =   pages x groups / valid pages
/// ```
///
/// which leaves one `v`, found by halving; each victim makes room for `pages - v`, and `pages` are programmed for them. The sum as a
/// logarithm is what makes `v` a mean, for victims of a real drive have this many valid pages or one more.
///
/// None where there is no spare room, or no group.
pub(crate) fn greedy(ratio: f64, pages: f64) -> Option<f64> {
    if !(ratio > 1.0 && ratio.is_finite() && pages >= 1.0 && pages.is_finite()) {
        return None;
    }
    let excess = |v: f64| libm::log((pages + 0.5) / (v + 0.5)) - ratio / pages * (pages - v);
    // Where the line touches the logarithm's slope there is the other root, a drive that is full of valid pages.
    let (mut low, mut high) = (-0.5, pages / ratio - 0.5);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    Some(pages / (pages - low.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive of nothing but a map: writes go to one open group, and when it is full the emptiest other one is emptied into the next.
    struct Bare {
        pages: usize,
        groups: Vec<Vec<usize>>,
        valid: Vec<usize>,
        map: Vec<usize>,
        open: usize,
        free: Vec<usize>,
        programmed: u64,
    }

    impl Bare {
        fn new(groups: usize, pages: usize, logical: usize) -> Self {
            let mut bare = Bare {
                pages,
                groups: vec![Vec::new(); groups],
                valid: vec![0; groups],
                map: vec![usize::MAX; logical],
                open: 0,
                free: (1..groups).collect(),
                programmed: 0,
            };
            (0..logical).for_each(|page| bare.write(page));
            bare
        }

        fn write(&mut self, page: usize) {
            if self.groups[self.open].len() == self.pages {
                self.open = self.free.pop().expect("one is kept");
                if self.free.is_empty() {
                    self.reclaim();
                }
            }
            self.place(page);
        }

        fn place(&mut self, page: usize) {
            if self.map[page] != usize::MAX {
                self.valid[self.map[page]] -= 1;
            }
            self.map[page] = self.open;
            self.valid[self.open] += 1;
            self.groups[self.open].push(page);
            self.programmed += 1;
        }

        fn reclaim(&mut self) {
            let open = self.open;
            let victim = (0..self.groups.len()).filter(|&group| group != open).min_by_key(|&group| self.valid[group]);
            let victim = victim.expect("more than one");
            for page in std::mem::take(&mut self.groups[victim]) {
                // A page that was written to the group twice is met twice: it is elsewhere by the second time.
                if self.map[page] == victim {
                    self.place(page);
                }
            }
            assert_eq!(self.valid[victim], 0);
            self.free.push(victim);
        }
    }

    #[test]
    fn analysis_agrees_with_a_drive_of_nothing_but_a_map() {
        for (groups, pages, ratio) in [(1024usize, 16usize, 1.28), (1024, 16, 1.1), (512, 32, 1.5)] {
            let logical = ((groups - 1) as f64 * pages as f64 / ratio) as usize;
            let mut bare = Bare::new(groups, pages, logical);
            let mut state = 1u64;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 33) as usize) % logical
            };
            (0..4 * logical).for_each(|_| bare.write(next()));
            let before = bare.programmed;
            (0..3 * logical).for_each(|_| bare.write(next()));
            let measured = (bare.programmed - before) as f64 / (3 * logical) as f64;
            let analysed = greedy(ratio, pages as f64).unwrap();
            assert!((measured / analysed - 1.0).abs() < 0.03, "{ratio}: {measured}, analysis {analysed}");
        }
    }

    /// For groups without end the share `u` of a victim that is valid is known from `ln(1 / u) = ratio (1 - u)`.
    #[test]
    fn large_groups_come_to_the_known_limit() {
        for ratio in [1.07, 1.28, 2.0] {
            let amplification = greedy(ratio, 1e9).unwrap();
            let u = 1.0 - 1.0 / amplification;
            assert!((libm::log(1.0 / u) - ratio * (1.0 - u)).abs() < 1e-6, "{ratio}: {amplification}");
        }
        assert!((greedy(1.28, 1e9).unwrap() - 2.481).abs() < 1e-3);
    }

    #[test]
    fn less_room_and_larger_groups_cost_more() {
        assert!(greedy(1.07, 64.0) > greedy(1.28, 64.0) && greedy(1.28, 256.0) > greedy(1.28, 64.0));
        assert_eq!(greedy(50.0, 4.0), Some(1.0), "a victim with nothing valid");
        for (ratio, pages) in [(1.0, 64.0), (0.9, 64.0), (f64::NAN, 64.0), (1.28, 0.0), (f64::INFINITY, 64.0)] {
            assert_eq!(greedy(ratio, pages), None);
        }
    }
}
