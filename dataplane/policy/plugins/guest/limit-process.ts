import { Worker } from 'node:worker_threads'

/** In TypeScript since its types for Node know it. */
interface Permission {
  drop(scope: string): void
}

const CHECK_MS = 1000
const MAX_HEAP_MB = 8

/** Ends the process when it has another parent, that is when the data plane was killed. */
const watch = `
const { workerData: parent } = require('node:worker_threads')
setInterval(() => process.ppid === parent || process.kill(process.pid, 'SIGKILL'), ${CHECK_MS})
`

/**
 * Takes the permissions from this process that only its start needs. From then on it ends with its parent, even while the plugin runs a loop: a thread without access
 * to anything else watches the parent. All modules must be loaded.
 *
 * @param parent process ID of the data plane
 */
export function limitProcess(parent: number): void {
  const resourceLimits = { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: 1 }
  new Worker(watch, { eval: true, workerData: parent, env: {}, resourceLimits }).unref()
  const { permission } = process as unknown as { readonly permission: Permission }
  // No further threads, and no files, those of the program included.
  for (const scope of ['worker', 'fs.read']) permission.drop(scope)
}
