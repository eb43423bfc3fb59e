import { parentPort, workerData } from 'node:worker_threads'
import { ConfigFileError, loadConfigFile, type ConfigFileOptions, type WorkerAnswer } from './file.ts'

/** Entry of the worker thread that reads a config file: parsing some megabytes of YAML would hold up traffic for a second. */
const { path, options } = workerData as { path: string; options: ConfigFileOptions }

const answer: WorkerAnswer = await loadConfigFile(path, options).catch((error: unknown) => {
  if (error instanceof ConfigFileError) return { problems: error.problems, texts: error.texts }
  throw error
})
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
parentPort?.postMessage(answer)
