import { existsSync } from 'node:fs'
import { parseTimeout } from '#api/duration.ts'
import type { ProcessConfig } from '#gen/config/types.ts'

/** Settings of the process but for its addresses (admin/listen.ts): environment over the file's `config` section over defaults (operator.md §2.4). Times in milliseconds. */
export interface ProcessSettings {
  readonly xdsAddress: string | undefined
  /** PEM file that the config stream's certificate is verified with; system CAs when absent. */
  readonly xdsRootCa: string | undefined
  /** Undefined where there is no such file: standalone. */
  readonly xdsTokenFile: string | undefined
  readonly namespace: string
  readonly gateway: string
  readonly podName: string
  readonly podIp: string
  readonly nodeName: string
  readonly logLevel: string
  readonly logFormat: 'json' | 'text'
  /** After SIGTERM, new requests are still accepted for so long. */
  readonly minDrainMs: number
  /** After SIGTERM, what is still open is cut after so long. */
  readonly maxDrainMs: number
}

/** Names the variable or field, its value and the fix. */
export class SettingError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>

export function readSettings(env: Environment, file: ProcessConfig = {}): ProcessSettings {
  const text = (name: string, fallback: string): string => (env[name] === undefined || env[name] === '' ? fallback : env[name])
  return {
    xdsAddress: text('XDS_ADDRESS', file.xdsAddress ?? '') || undefined,
    xdsRootCa: text('XDS_ROOT_CA', '') || undefined,
    xdsTokenFile: existing(text('XDS_TOKEN_FILE', '/var/run/secrets/xds-tokens/xds-token')),
    namespace: text('NAMESPACE', file.namespace ?? 'default'),
    gateway: text('GATEWAY', file.gateway ?? 'proxy'),
    podName: text('POD_NAME', 'proxy'),
    podIp: text('INSTANCE_IP', '127.0.0.1'),
    nodeName: text('NODE_NAME', ''),
    logLevel: text('PROXY_LOG', file.logging?.level ?? 'info'),
    logFormat: file.logging?.format ?? 'text',
    minDrainMs: readMs('CONNECTION_MIN_TERMINATION_DEADLINE', text('CONNECTION_MIN_TERMINATION_DEADLINE', file.connectionMinTerminationDeadline ?? '0s')),
    maxDrainMs: readGrace(env, file),
  }
}

const existing = (path: string): string | undefined => (existsSync(path) ? path : undefined)

/** The pod's grace period is cut a little short, so that we end before we are killed (operator.md §2.4). */
function readGrace(env: Environment, file: ProcessConfig): number {
  const raw = env['TERMINATION_GRACE_PERIOD_SECONDS']
  if (raw === undefined || raw === '') return readMs('config.connectionTerminationDeadline', file.connectionTerminationDeadline ?? '60s')
  const seconds = Number(raw)
  if (!Number.isInteger(seconds) || seconds < 0) throw new SettingError(`TERMINATION_GRACE_PERIOD_SECONDS is "${raw}": give whole seconds, such as 60`)
  return Math.max(1, seconds > 10 ? seconds - 5 : seconds - 1) * 1000
}

function readMs(name: string, raw: string): number {
  const ms = parseTimeout(raw)
  if (ms === undefined) throw new SettingError(`${name} is "${raw}": give a duration such as 10s or 1m30s`)
  return ms
}
