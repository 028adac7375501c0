//! Recorded workloads with other numbers of ranks: what comes out is what the kernel itself would do.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{Step, Workload};
use hyperslab_kernels::Particles;
use hyperslab_kernels::ior::{Ior, Layout};
use hyperslab_sim::rescaled;
use proptest::prelude::*;

fn same(found: &Workload, wanted: &Workload) {
    assert_eq!(found.header.ranks, wanted.header.ranks);
    for (a, b) in found.header.arrays.iter().zip(&wanted.header.arrays) {
        assert_eq!(a.spec.shape, b.spec.shape);
    }
    for rank in 0..wanted.header.ranks {
        let [a, b] = [found, wanted].map(|one| one.steps(rank).unwrap().collect::<Result<Vec<Step>, _>>().unwrap());
        assert_eq!(a, b, "rank {rank}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn regular_ones_become_what_the_kernel_would_do(
        recorded in 2_usize..9, ranks in 1_usize..30, calls in 1_u64..5, segments in 1_u64..4, steps in 1_u64..3
    ) {
        let ior = |ranks| Ior {
            block: calls * 4096, transfer: 4096, segments, layout: Layout::Bytes { chunk: None }, ..Ior::new(ranks, "f")
        };
        same(&rescaled(&ior(recorded).write().unwrap(), ranks).unwrap(), &ior(ranks).write().unwrap());
        let particles = |ranks| Particles { time_steps: steps, ..Particles::new("p", ranks, &[calls * 100]) };
        same(&rescaled(&particles(recorded).write().unwrap(), ranks).unwrap(), &particles(ranks).write().unwrap());
    }
}

#[test]
fn irregular_ones_are_refused_with_the_reason() {
    let uneven = Particles { deviation: 7, ..Particles::new("p", 4, &[1000]) };
    let said = rescaled(&uneven.write().unwrap(), 8).unwrap_err().to_string();
    assert!(said.contains("is not known: in step"), "{said}");
    let alone = Particles::new("p", 1, &[1000]).write().unwrap();
    assert!(rescaled(&alone, 2).unwrap_err().to_string().contains("one rank"));
    let same = Particles::new("p", 3, &[1000]).write().unwrap();
    assert!(rescaled(&same, 0).is_err() && rescaled(&same, 3).is_ok());
}
