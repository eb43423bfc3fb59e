import { readFile } from 'node:fs/promises'

/** What a client of a server says about a failure: the message, or those of all addresses that were tried. */
export const messageOf = (error: unknown): string =>
  error instanceof AggregateError ? error.errors.map(messageOf).join('; ') : error instanceof Error ? error.message : String(error)

/** Reads a file with a password, without the end of its line. */
export const readPasswordFile = async (path: string): Promise<string> => (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
