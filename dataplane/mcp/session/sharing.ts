/** Knowledge about sessions that the workers of a data plane share. A data plane without workers has none. */
export interface SessionSharing {
  /** Requests of the session come to this worker, which holds its live connections. */
  claim(id: string): void
  /** The session is no longer in this worker. */
  release(id: string): void
  /** The session ended: no worker accepts its id any more. */
  end(id: string): void
  hasEnded(id: string): boolean
}
