/* Says which digits the images show that come from standard input: 64 numbers from 0 (paper) to 1 (ink) each. */

#include <stdio.h>

#include "digits.h"

enum { PIXELS = 8 * 8, DIGITS = 10 };

static unsigned char room[DIGITS_MEMORY + DIGITS_ALIGNMENT];

static int next_image(float *image) {
  for (int pixel = 0; pixel < PIXELS; pixel++)
    if (scanf("%f", &image[pixel]) != 1) return 0;
  return 1;
}

int main(void) {
  float image[PIXELS], probabilities[DIGITS];
  void *memory = room + (DIGITS_ALIGNMENT - (uintptr_t)room % DIGITS_ALIGNMENT) % DIGITS_ALIGNMENT;
  digits_start(memory);
  while (next_image(image)) {
    if (digits_run(memory, image, probabilities)) return 1;
    int best = 0;
    for (int digit = 1; digit < DIGITS; digit++)
      if (probabilities[digit] > probabilities[best]) best = digit;
    printf("%d %.6f\n", best, probabilities[best]);
  }
  return 0;
}
