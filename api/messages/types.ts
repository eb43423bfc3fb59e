/** A message that programs print, as its reference page describes it. */
export interface MessageEntry {
  /** The problem in a few words. */
  readonly title: string
  /** When the message appears, and what happens to traffic. */
  readonly cause: string
  /** What to do about it. */
  readonly fix: string
}

/** The messages of one area, by code. The first digits of a code are those of its area. */
export type MessageTable = Readonly<Record<`PX${number}`, MessageEntry>>
