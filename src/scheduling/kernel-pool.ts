/** Threads that run kernels, whatever the platform makes them of. */
export interface KernelPool<Task> {
  /**
   * Runs each task on a thread of its own, all at the same time, one set at once.
   * The promises reject with the AprError that a worker threw, or with INFERENCE when its thread died.
   */
  run(tasks: readonly Task[]): Promise<void>[];
  /** Ends all threads, working or not. */
  dispose(): Promise<void>;
}
