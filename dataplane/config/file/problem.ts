import { hash } from 'node:crypto'

/** Digests of all files that were read, by absolute path; undefined: the file could not be read. */
export type FileDigests = ReadonlyMap<string, string | undefined>

/** Hash of a file's content: comparing hashes shows an edit without keeping the content in memory. */
export const digestOf = (bytes: Buffer | string): string => hash('sha256', bytes, 'base64')

/** An invalid config file. Each of `problems` reads `file:line: path: problem`. */
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

/** Gateway of the file's listeners: from the environment, else from the file's `config`, else `default/config`. */
export interface ConfigFileOptions {
  readonly namespace?: string | undefined
  readonly gateway?: string | undefined
  /** Content, instead of that of the file: standard input of proxyctl. */
  readonly text?: string
}
