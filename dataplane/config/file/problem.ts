import { hash } from 'node:crypto'

/** Digests of all files that were read, by absolute path; undefined: the file could not be read. */
export type FileDigests = ReadonlyMap<string, string | undefined>

/** Hash of a file's content: comparing hashes shows an edit without keeping the content in memory. */
export const digestOf = (bytes: Buffer | string): string => hash('sha256', bytes, 'base64')

/** An invalid config file. Each of `problems` reads `file:line:column: path: problem`. */
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

/** How a file is read. Gateway of its listeners: from the environment, else from the file's `config`, else `default/config`. */
export interface ConfigFileOptions {
  readonly namespace?: string | undefined
  readonly gateway?: string | undefined
  /** Content, instead of that of the file: standard input of proxyctl. */
  readonly text?: string
  /** `literal`: placeholders such as `${NAME}` are text. For files that others than the user of the process write. Default: resolve. */
  readonly placeholders?: 'resolve' | 'literal' | undefined
  /** Variables for placeholders. Default: those of the process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

const readErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'no permission to read it',
  EISDIR: 'is a directory; name a file',
  ENOTDIR: 'part of the path is not a directory',
}

/** The cause for which a file was not read, in a few words. */
export function describeReadError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === undefined) return message
  return readErrors[code] ?? `cannot be read: ${message}`
}
