import { basename } from 'node:path'
import { stringify } from 'yaml'

/** Key of the source in its ConfigMap, and name of its file. */
export const KEY = 'index.ts'

/** A failure that the user can correct, and its code. */
export class ToolError extends Error {
  readonly code: 'PX6009' | 'PX6013'

  constructor(code: 'PX6009' | 'PX6013', message: string) {
    super(message)
    this.code = code
  }
}

/** @throws ToolError */
export function fail(message: string, code: ToolError['code'] = 'PX6013'): never {
  throw new ToolError(code, message)
}

/** Name of the directory as the name of an object. */
export function nameOf(directory: string): string {
  const name = basename(directory)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, 60)
    .replace(/-$/, '')
  return name || 'plugin'
}

/** The ConfigMap of a source. */
export const createConfigMap = (name: string, namespace: string | undefined, code: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...(namespace !== undefined && { namespace }) },
  data: { [KEY]: code },
})

export const printManifest = (value: object): string => stringify(value, { lineWidth: 0, version: '1.1' })

/** An argument as a POSIX shell reads it. */
export const quote = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`)
