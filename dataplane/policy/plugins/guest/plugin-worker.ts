import { parentPort, workerData } from 'node:worker_threads'
import { currentThread, lowerCurrentThread } from '../../../runtime/thread-priority.ts'
import type { PluginData } from './messages.ts'
import { servePlugin } from './serve-plugin.ts'

const port = parentPort
if (port === null) throw new Error('plugin-worker.ts runs in a worker thread only')
// A plugin that computes must not delay traffic of other routes on the same core.
lowerCurrentThread()
port.on(
  'message',
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  servePlugin(workerData as PluginData, (message) => port.postMessage(message), currentThread()),
)
