import { parseArgs } from 'node:util'
import { XDS_PORT } from '#api/names.ts'
import { runDirectoryMode } from './directory.ts'

const USAGE = `usage: operator --dir DIR [--listen HOST:PORT]

  --dir DIR           translate the manifests of a directory tree
  --listen HOST:PORT  where the config stream is served (default 127.0.0.1:${XDS_PORT}; port 0 picks one)
`

async function main(): Promise<void> {
  const { dir, listen, help } = parseArgs({
    options: { dir: { type: 'string' }, listen: { type: 'string', default: `127.0.0.1:${XDS_PORT}` }, help: { type: 'boolean', short: 'h' } },
  }).values
  if (help === true) {
    process.stdout.write(USAGE)
    return
  }
  if (dir === undefined) throw new Error('--dir is missing: name a directory of manifests')
  const mode = await runDirectoryMode({ directory: dir, listen, report: (event) => process.stdout.write(`${JSON.stringify(event)}\n`) })
  const stop = (): void => {
    mode.close().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

try {
  await main()
} catch (error) {
  process.stderr.write(`operator: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
