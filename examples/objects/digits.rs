//! Says which digits the images show that come from standard input: 64 numbers from 0 (paper) to 1 (ink) each.

use std::io::Read;

const PIXELS: usize = 8 * 8;
const DIGITS: usize = 10;
/// `DIGITS_MEMORY` of digits.h is less.
const MEMORY: usize = 1 << 20;

unsafe extern "C" {
    fn digits_start(memory: *mut u8);
    fn digits_run(memory: *mut u8, image: *const f32, probabilities: *mut f32) -> i32;
}

/// What the model works in, which begins where the header says: at a multiple of `DIGITS_ALIGNMENT`.
#[repr(align(64))]
struct Memory([u8; MEMORY]);

/// The network, with memory of its own.
struct Model(Box<Memory>);

impl Model {
    fn new() -> Self {
        let mut memory = Box::new(Memory([0; MEMORY]));
        // The memory is as large and as aligned as the model wants it, and stays where it is in its box.
        unsafe { digits_start(memory.0.as_mut_ptr()) };
        Model(memory)
    }

    fn run(&mut self, image: &[f32; PIXELS]) -> Option<[f32; DIGITS]> {
        let mut probabilities = [0.0; DIGITS];
        // The arrays are as long as the header says.
        let refused = unsafe { digits_run(self.0.0.as_mut_ptr(), image.as_ptr(), probabilities.as_mut_ptr()) };
        (refused == 0).then_some(probabilities)
    }
}

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("texts come from standard input");
    let pixels: Vec<f32> = text.split_whitespace().map(|one| one.parse().expect("a number")).collect();
    let mut model = Model::new();
    for image in pixels.chunks_exact(PIXELS) {
        let found = model.run(image.try_into().expect("a whole image")).expect("a run that is not refused");
        let best = (0..DIGITS).fold(0, |best, digit| if found[digit] > found[best] { digit } else { best });
        println!("{best} {:.6}", found[best]);
    }
}
