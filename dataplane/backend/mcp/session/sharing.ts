import type { ResponseHead } from '../../../http/message.ts'

/** Knowledge about sessions that the workers of a data plane share. A data plane without workers has none. */
export interface SessionSharing {
  /** Requests of the session come to this worker, which holds its live connections. */
  claim(id: string): void
  /** The session is no longer in this worker. */
  release(id: string): void
  /** The session ended: no worker accepts its id any more. */
  end(id: string): void
  hasEnded(id: string): boolean
  /** Counts a change of something with a name, such as a list of a server. */
  bumpChanges(name: string): void
  changesOf(name: string): number
}

/** Registers a callback for when a message is no longer needed. */
export type OnGone = (callback: (reason: Error) => void) => void

/** Messages between the workers of a data plane, about what one of them holds. */
export interface WorkerMessages {
  /** Sends a message to the worker that claimed the id; undefined if no other worker has it. */
  send(id: string, text: string, onGone: OnGone): Promise<ResponseHead> | undefined
  /** Sets the handler of messages from other workers. */
  handle(handler: (text: string) => Promise<ResponseHead>): void
}

/** Where a replica takes messages. */
export interface PeerAddress {
  /** IP address. */
  readonly host: string
  readonly port: number
}

/** Messages between replicas that have the same session keys, about what one of them holds. */
export interface PeerMessages {
  /** The address of this replica; undefined: it takes no messages now. */
  readonly address: PeerAddress | undefined
  /** Sends a message to another replica; undefined if the address is that of this one. */
  send(to: PeerAddress, text: string, onGone: OnGone): Promise<ResponseHead> | undefined
  /** Sets the handler of messages from other replicas. */
  handle(handler: (text: string, onGone: OnGone) => Promise<ResponseHead>): void
}
