import { withCode } from '#api/messages/code.ts'
import { parseArgs } from 'node:util'
import { XDS_PORT } from '#api/names.ts'
import packageJson from '../package.json' with { type: 'json' }
import { runDirectoryMode } from './program/directory.ts'
import { readGrantMode, readRegistryFiles } from './program/settings.ts'

const USAGE = `usage: operator [--dir DIR] [--listen HOST:PORT] | --version

Without --dir it runs against the cluster of KUBECONFIG, or of the pod that it is; its settings are environment variables (operator/README.md).

  --dir DIR           translate the manifests of a directory tree
  --listen HOST:PORT  where the config stream is served (default 127.0.0.1:${XDS_PORT}; port 0 picks one)
`

async function main(): Promise<void> {
  const { dir, listen, help, version } = parseArgs({
    options: {
      dir: { type: 'string' },
      listen: { type: 'string', default: `127.0.0.1:${XDS_PORT}` },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean' },
    },
  }).values
  if (help === true) {
    process.stdout.write(USAGE)
    return
  }
  if (version === true) {
    process.stdout.write(`${packageJson.version}\n`)
    return
  }
  const mode =
    dir === undefined
      ? await startClusterMode()
      : await runDirectoryMode({
          directory: dir,
          listen,
          report: (event) => process.stdout.write(`${JSON.stringify(event)}\n`),
          backendGrants: readGrantMode(process.env),
          registryFiles: readRegistryFiles(process.env),
        })
  const stop = (): void => {
    mode.close().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

/** Loaded only where there is a cluster: its client is large. */
async function startClusterMode(): Promise<{ close(): Promise<void> }> {
  const [{ runClusterMode }, { readSettings }, { createLog }, { findClusterDomain }] = await Promise.all([
    import('./program/cluster.ts'),
    import('./program/settings.ts'),
    import('./runtime/log.ts'),
    import('./kube/cluster-domain.ts'),
  ])
  const settings = readSettings(process.env, await findClusterDomain())
  return runClusterMode({ settings, log: createLog(settings.logLevel, (line) => process.stdout.write(line)) })
}

try {
  await main()
} catch (error) {
  process.stderr.write(`operator: ${withCode(error instanceof Error ? error.message : String(error), 'PX5001')}\n`)
  process.exit(1)
}
