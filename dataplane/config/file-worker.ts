import { parentPort, workerData } from 'node:worker_threads'
import { loadConfigFile } from './file.ts'
import { ConfigFileError, type ConfigFileOptions } from './file-problem.ts'
import type { WorkerAnswer } from './file-read.ts'

/** Entry of the worker thread that reads a config file (file-read.ts). */
const { path, options } = workerData as { path: string; options: ConfigFileOptions }

async function read(): Promise<WorkerAnswer> {
  try {
    const { process, messages, texts } = await loadConfigFile(path, options)
    return { process, texts, messages: messages.map(({ kind, message }) => ({ kind, key: message.key, json: JSON.stringify(message) })) }
  } catch (error) {
    if (error instanceof ConfigFileError) return { problems: error.problems, texts: error.texts }
    throw error
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
parentPort?.postMessage(await read())
