import { loadConfigFile } from './file.ts'
import { ConfigFileError, type ConfigFileOptions, type FileTexts } from './file-problem.ts'
import type { FileHeader } from './file-read.ts'

/** The process that reads a config file (file-read.ts): path and options in, one line for the file and one per message out. */
const [path = '', options = '{}'] = process.argv.slice(2)

const entriesOf = (texts: FileTexts): FileHeader['texts'] => [...texts].map(([name, text]) => [name, text ?? null])

async function read(): Promise<string> {
  try {
    const { process: settings, messages, warnings, texts } = await loadConfigFile(path, JSON.parse(options) as ConfigFileOptions)
    const header: FileHeader = { texts: entriesOf(texts), process: settings, warnings }
    // JSON escapes tabs and line feeds: neither stands in a part.
    return [JSON.stringify(header), ...messages.map(({ kind, message }) => [kind, JSON.stringify(message.key), JSON.stringify(message)].join('\t'))].join('\n')
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    const header: FileHeader = { texts: entriesOf(error.texts), problems: error.problems }
    return JSON.stringify(header)
  }
}

process.stdout.write(await read())
