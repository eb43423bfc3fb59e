import { loadConfigFile } from './file.ts'
import { ConfigFileError, digestOf, type ConfigFileOptions } from './problem.ts'
import type { FileHeader } from './read.ts'
import type { ConfigMessage } from '../store.ts'

/** Program that reads a config file for read.ts: path and options are arguments; prints one line for the file and one per message. */
const [path = '', options = '{}'] = process.argv.slice(2)

async function read(): Promise<string> {
  try {
    const { process: settings, messages, warnings, notes, digests } = await loadConfigFile(path, JSON.parse(options) as ConfigFileOptions)
    const header: FileHeader = { files: [...digests], process: settings, warnings, notes }
    return `${[JSON.stringify(header), ...messages.map(encodeLine)].join('\n')}\n`
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    const header: FileHeader = { files: [...error.digests], problems: error.problems }
    return `${JSON.stringify(header)}\n`
  }
}

/** JSON escapes tabs and line feeds, so no part contains the separators. */
function encodeLine({ kind, message }: ConfigMessage): string {
  const json = JSON.stringify(message)
  return [kind, JSON.stringify(message.key), digestOf(json), json].join('\t')
}

process.stdout.write(await read())
