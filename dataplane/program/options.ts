import type { ConfigFileOptions } from '../config/file/problem.ts'

export interface DataplaneOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Path of the `-f` file. */
  readonly file: string | undefined
  readonly version: string
}

/** Error of a process without a source of config. */
export const NO_SOURCE = 'neither -f nor XDS_ADDRESS is given: name a config file, or the address of an operator'

/**
 * With a config stream, listeners of the file belong to the Gateway of the stream, and placeholders are text: in a cluster the file is
 * `ProxyParameters.spec.rawConfig`, whose authors must not read the environment and the files of the pod (operator.md §2.5).
 */
export function fileOptionsOf(env: DataplaneOptions['env']): ConfigFileOptions {
  return env['XDS_ADDRESS'] === undefined ? {} : { namespace: env['NAMESPACE'], gateway: env['GATEWAY'], placeholders: 'literal' }
}
