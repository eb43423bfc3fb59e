import { hash } from 'node:crypto'

/** What stands for the bytes of every file that was looked at, by absolute path; undefined: could not be read. */
export type FileDigests = ReadonlyMap<string, string | undefined>

/** Bytes that differ have digests that differ: megabytes need not be kept to notice an edit. */
export const digestOf = (bytes: Buffer | string): string => hash('sha256', bytes, 'base64')

/** A file that cannot be used. `problems` are `file:line: path: what`. */
export class ConfigFileError extends Error {
  readonly problems: readonly string[]
  readonly digests: FileDigests

  constructor(problems: readonly string[], digests: FileDigests) {
    super(problems.join('\n'))
    this.name = 'ConfigFileError'
    this.problems = problems
    this.digests = digests
  }
}

/** Gateway that the file's listeners belong to: what the environment says, else the file's `config`, else `default/config`. */
export interface ConfigFileOptions {
  readonly namespace?: string | undefined
  readonly gateway?: string | undefined
}
