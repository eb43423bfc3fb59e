import { createHash } from 'node:crypto'
import type { Plugin } from '#gen/config/types.ts'
import type { PolicyState } from '../state.ts'

/** Shorter values would replace parts of words. */
const MIN_REDACTED_LENGTH = 4

/** The secrets of a version of a plugin. */
export interface PluginSecrets {
  readonly values: Readonly<Record<string, string>>
  /** Equal for equal values. */
  readonly digest: string
  /** Why there are none; the plugin fails. */
  readonly problem: string | undefined
}

const NONE: PluginSecrets = { values: {}, digest: '', problem: undefined }

/** Reads the secrets of a plugin. */
export function readSecrets({ secrets }: Plugin, all: PolicyState['secrets']): PluginSecrets {
  if (secrets === undefined) return NONE
  const values: Record<string, string> = {}
  for (const { name, secretRef } of secrets) {
    const { secret = '', key = '', invalid } = secretRef
    const data = all.get(secret)?.data
    const value = data !== undefined && Object.hasOwn(data, key) ? data[key] : undefined
    if (value === undefined) return { ...NONE, problem: `secret ${name}: ${invalid ?? `${secret} has no ${key}`}` }
    values[name] = value
  }
  return { values, digest: createHash('sha256').update(JSON.stringify(values)).digest('hex'), problem: undefined }
}

/** Replaces secrets in a line of log. */
export function redact(text: string, { values }: PluginSecrets): string {
  return Object.values(values).reduce((line, value) => (value.length < MIN_REDACTED_LENGTH ? line : line.replaceAll(value, '***')), text)
}
