// The time that the picture shows, and how it moves.

export const SPEEDS = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5] as const;

export class Player {
  t = 0;
  speed = 0.5;
  playing = false;
  /** How far the picture may go: the end of the run, or of what has arrived of it. */
  limit = 0;
  end = 1;
  private last: number | null = null;

  /** Moves the time by a frame at `now` ms. Returns whether it moved. */
  tick(now: number): boolean {
    const before = this.last;
    this.last = now;
    if (!this.playing || before === null) return false;
    // After a pause of the page (another tab), time goes on where it was.
    const passed = Math.min(100, now - before);
    const next = this.t + passed * 1e6 * this.speed;
    if (next >= this.end) {
      this.t = this.end;
      this.playing = false;
    } else {
      this.t = Math.min(next, Math.max(this.t, this.limit));
    }
    return true;
  }

  seek(t: number): void {
    this.t = Math.max(0, Math.min(this.end, t));
  }

  toggle(): void {
    this.playing = !this.playing;
    if (this.playing && this.t >= this.end) this.t = 0;
  }
}
