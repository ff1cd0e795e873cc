/* Says which digits the images show that come from standard input, 256 at once, with four threads: as many as the
   object was compiled for, with --set B=256 --threads 4. Images that are not there are blank, and not told. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "digits.h"

enum { THREADS = 4, BATCH = 256, PIXELS = 8 * 8, DIGITS = 10 };

/* Threads that wait for parts of a step. What is below is guarded by lock. */
struct pool {
  pthread_mutex_t lock;
  pthread_cond_t offered, finished;
  void (*part)(void *work, int32_t number);
  void *work;
  int32_t next, parts, done;
  int ends, shared;
};

/* Do parts as long as there are any. The lock is held before and after. */
static void help(struct pool *pool) {
  while (pool->next < pool->parts) {
    int32_t number = pool->next++;
    pthread_mutex_unlock(&pool->lock);
    pool->part(pool->work, number);
    pthread_mutex_lock(&pool->lock);
    if (++pool->done == pool->parts) pthread_cond_signal(&pool->finished);
  }
}

static void *wait_and_help(void *given) {
  struct pool *pool = given;
  pthread_mutex_lock(&pool->lock);
  while (!pool->ends) {
    help(pool);
    if (!pool->ends) pthread_cond_wait(&pool->offered, &pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* What the run calls: a digits_share. */
static void share(void *given, int32_t parts, void (*part)(void *work, int32_t number), void *work) {
  struct pool *pool = given;
  pthread_mutex_lock(&pool->lock);
  pool->part = part, pool->work = work, pool->next = 0, pool->parts = parts, pool->done = 0;
  pool->shared++;
  pthread_cond_broadcast(&pool->offered);
  help(pool);
  while (pool->done < pool->parts) pthread_cond_wait(&pool->finished, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

static unsigned char room[DIGITS_MEMORY + DIGITS_ALIGNMENT];
static float images[BATCH * PIXELS], probabilities[BATCH * DIGITS];

static int next_images(void) {
  int found = 0;
  memset(images, 0, sizeof images);
  while (found < BATCH * PIXELS && scanf("%f", &images[found]) == 1) found++;
  return found / PIXELS;
}

int main(void) {
  static struct pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .offered = PTHREAD_COND_INITIALIZER,
                             .finished = PTHREAD_COND_INITIALIZER};
  void *memory = room + (DIGITS_ALIGNMENT - (uintptr_t)room % DIGITS_ALIGNMENT) % DIGITS_ALIGNMENT;
  pthread_t threads[THREADS - 1];
  for (int i = 0; i < THREADS - 1; i++)
    if (pthread_create(&threads[i], NULL, wait_and_help, &pool)) return 2;
  digits_start(memory);
  for (int count; (count = next_images());) {
    if (digits_run_shared(memory, share, &pool, images, probabilities)) return 1;
    for (int image = 0; image < count; image++) {
      const float *of_image = &probabilities[image * DIGITS];
      int best = 0;
      for (int digit = 1; digit < DIGITS; digit++)
        if (of_image[digit] > of_image[best]) best = digit;
      printf("%d %.6f\n", best, of_image[best]);
    }
  }
  pthread_mutex_lock(&pool.lock);
  pool.ends = 1;
  pthread_cond_broadcast(&pool.offered);
  pthread_mutex_unlock(&pool.lock);
  for (int i = 0; i < THREADS - 1; i++) pthread_join(threads[i], NULL);
  fprintf(stderr, "%d steps were shared\n", pool.shared);
  return 0;
}
