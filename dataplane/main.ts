import { BRIDGE_CONFIG } from '#api/bridge.ts'
import { SettingError } from './program/settings.ts'
import { LogLevelError } from './observe/telemetry/log.ts'
import { redactText } from './observe/telemetry/redact.ts'
import { withCode } from '#api/messages/code.ts'
import { parseArgs } from 'node:util'
import packageJson from '../package.json' with { type: 'json' }
import { runDataplane } from './program/dataplane.ts'
import { checkDataplane } from './program/dry-run.ts'
import { ConfigFileError } from './config/file/problem.ts'

const USAGE = `usage: dataplane [-f FILE] [--dry-run]

  -f, --file FILE  configuration file (YAML); with XDS_ADDRESS set, its listeners are added to those of the stream
  --dry-run        check the file and the environment, print the ports, and exit
  --bridge         take no settings from the environment, which is that of an MCP server
  --install-bridge DIR
                   copy Node, this program and the config in ${BRIDGE_CONFIG} to DIR, and exit (docs/guide/mcp-servers.md)
  --version        print the version

Environment: XDS_ADDRESS, NAMESPACE, GATEWAY, ADMIN_ADDR, ADMIN_TOKEN, STATS_ADDR, READINESS_ADDR, PROXY_LOG, WORKERS (docs/guide/management-endpoints.md)
`

async function main(): Promise<void> {
  const {
    file,
    version,
    help,
    'dry-run': isDryRun,
    bridge: isBridge,
    'install-bridge': bridgeDirectory,
  } = parseArgs({
    options: {
      file: { type: 'string', short: 'f' },
      'dry-run': { type: 'boolean' },
      bridge: { type: 'boolean' },
      'install-bridge': { type: 'string' },
      version: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  }).values
  if (version === true || help === true) {
    process.stdout.write(help === true ? USAGE : `${packageJson.version}\n`)
    return
  }
  if (isDryRun === true) {
    process.stdout.write(await checkDataplane({ env: process.env, file, version: packageJson.version }))
    return
  }
  if (bridgeDirectory !== undefined) {
    const { installBridge } = await import('./program/bridge/install.ts')
    return installBridge(bridgeDirectory, import.meta.dirname, process.env[BRIDGE_CONFIG] ?? '')
  }
  // Kubernetes sets the variable in every pod.
  const { KUBERNETES_SERVICE_HOST } = process.env
  const env = isBridge === true ? { KUBERNETES_SERVICE_HOST } : process.env
  const dataplane = await runDataplane({ env, file, version: packageJson.version })
  const stop = (signal: string): void => {
    dataplane.drain(signal).then(
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
  const lines =
    error instanceof ConfigFileError
      ? error.problems
      : [
          withCode(
            error instanceof Error ? error.message : String(error),
            error instanceof SettingError || error instanceof LogLevelError ? 'PX4001' : 'PX4002',
          ),
        ]
  for (const line of lines) process.stderr.write(`dataplane: ${redactText(line)}\n`)
  process.exit(1)
}
