import { Worker } from 'node:worker_threads'
import type { MessageKind } from '#api/config/definitions.ts'
import type { ProcessConfig } from '#gen/config/types.ts'
import { ConfigFileError, type ConfigFileOptions, type FileTexts } from './file-problem.ts'

/** A message as text: cheap to hand from thread to thread, and to compare. */
export interface EncodedMessage {
  readonly kind: MessageKind
  readonly key: string
  readonly json: string
}

/** What a good file says. */
export interface EncodedFile {
  readonly process: ProcessConfig
  readonly messages: readonly EncodedMessage[]
  readonly texts: FileTexts
}

/** What the worker thread posts: a file, or what a ConfigFileError holds. */
export type WorkerAnswer = EncodedFile | { readonly problems: readonly string[]; readonly texts: FileTexts }

/** `file-worker.ts`, or what it was bundled to. */
const WORKER = new URL(import.meta.url.endsWith('.ts') ? './file-worker.ts' : './file-worker.js', import.meta.url)

/**
 * Reads a `-f` file in a thread of its own: parsing and checking some megabytes takes a second, in which traffic would stand
 * still, and the libraries for it take memory that is free again afterwards.
 * @throws ConfigFileError naming each problem by file, line and path
 */
export async function readConfigFile(path: string, { namespace, gateway }: ConfigFileOptions = {}): Promise<EncodedFile> {
  const answer = await new Promise<WorkerAnswer>((settle, reject) => {
    const worker = new Worker(WORKER, { workerData: { path, options: { namespace, gateway } } })
    worker.on('message', settle).on('error', reject)
    worker.on('exit', () => reject(new Error('the thread that reads the config file ended without an answer')))
  })
  if ('problems' in answer) throw new ConfigFileError(answer.problems, answer.texts)
  return answer
}
