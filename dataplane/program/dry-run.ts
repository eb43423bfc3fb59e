import type { Bind } from '#gen/config/types.ts'
import { resolveAddresses } from '../management/admin/listen.ts'
import { describePlaces } from '../config/file/addresses.ts'
import { readConfigFile } from '../config/file/read.ts'
import { fileOptionsOf, NO_SOURCE, type DataplaneOptions } from './options.ts'
import { readSettings, takeAdminToken } from './settings.ts'

/**
 * Checks the config file and the settings without opening a port. Resolves with lines to print: one for each warning, and the ports. Rejects like
 * `runDataplane` if the process could not start.
 */
export async function checkDataplane({ env, file }: DataplaneOptions): Promise<string> {
  takeAdminToken(env)
  const read = file === undefined ? undefined : await readConfigFile(file, fileOptionsOf(env))
  const settings = readSettings(env, read?.process)
  resolveAddresses(env, read?.process ?? {})
  if (read === undefined) {
    if (settings.xdsAddress === undefined) throw new Error(NO_SOURCE)
    return `settings: valid; the config comes from ${settings.xdsAddress}\n`
  }
  const places = read.messages.flatMap(({ kind, message }) => (kind === 'bind' ? describePlaces(message as Bind) : []))
  const summary = places.length > 0 ? `listens on ${places.join(', ')}` : 'no port to listen on; add models, mcp or binds, unless an operator adds listeners'
  return [...[...read.warnings, ...read.notes].map((warning) => `warning: ${warning}`), `${file}: valid; ${summary}`, ''].join('\n')
}
