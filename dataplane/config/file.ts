import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { ConfigFile, ProcessConfig } from '#gen/config/types.ts'
import { flattenFile } from './file-flatten.ts'
import { watchFiles, type FileWatch } from './file-watch.ts'
import { parseYaml } from './file-yaml.ts'
import type { ConfigMessage, ConfigStore } from './store.ts'
import { formatProblem, validate } from './validate.ts'

/** Text of every file that was looked at, by absolute path; undefined: could not be read. */
export type FileTexts = ReadonlyMap<string, string | undefined>

/** What a good file says. */
export interface LoadedConfigFile {
  /** Settings of the process, as written; environment variables win over them. */
  readonly process: ProcessConfig
  readonly messages: readonly ConfigMessage[]
  /** The file itself and the certificates and keys that it names. */
  readonly texts: FileTexts
}

/** A file that cannot be used. `problems` are `file:line: path: what`. */
export class ConfigFileError extends Error {
  readonly problems: readonly string[]
  readonly texts: FileTexts

  constructor(problems: readonly string[], texts: FileTexts) {
    super(problems.join('\n'))
    this.name = 'ConfigFileError'
    this.problems = problems
    this.texts = texts
  }
}

/** Gateway that the file's listeners belong to: what the environment says, else the file's `config`, else `default/config`. */
export interface ConfigFileOptions {
  readonly namespace?: string
  readonly gateway?: string
}

/**
 * Reads a `-f` file: YAML or JSON, checked against the schema `ConfigFile` of gen/config/schema.json.
 * @throws ConfigFileError naming each problem by file, line and path
 */
export async function loadConfigFile(path: string, options: ConfigFileOptions = {}): Promise<LoadedConfigFile> {
  const texts = new Map<string, string | undefined>()
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    texts.set(resolve(path), undefined)
    throw new ConfigFileError([`${path}: ${describeReadError(error)}`], texts)
  })
  texts.set(resolve(path), text)
  const fail = (problems: readonly string[]): never => {
    throw new ConfigFileError(problems, texts)
  }

  const document = parseYaml(text)
  if ('problems' in document) return fail(document.problems.map((problem) => `${path}:${problem.line}: ${problem.text}`))
  const { value, lineOf } = document
  const schemaProblems = validate('ConfigFile', value)
  if (schemaProblems.length > 0) return fail(schemaProblems.map((problem) => `${path}:${lineOf(problem.path)}: ${formatProblem(problem)}`))

  const file = value as ConfigFile
  const gateway = { namespace: options.namespace ?? file.config?.namespace ?? 'default', name: options.gateway ?? file.config?.gateway ?? 'config' }
  const { messages, problems } = flattenFile(file, gateway, (name) => {
    const absolute = resolve(dirname(path), name)
    texts.set(absolute, undefined)
    try {
      const content = readFileSync(absolute, 'utf8')
      texts.set(absolute, content)
      return content
    } catch (error) {
      throw new Error(`${name}: ${describeReadError(error)}`, { cause: error })
    }
  })
  if (problems.length > 0) return fail(problems.map((problem) => `${path}:${lineOf(problem.path)}: ${formatProblem(problem)}`))
  return { process: file.config ?? {}, messages, texts }
}

export interface FollowConfigFileOptions extends ConfigFileOptions {
  readonly path: string
  readonly store: ConfigStore
  /** An edit was applied. A changed `config` section needs a restart; `process` is what the file says now. */
  readonly onReload?: (loaded: LoadedConfigFile) => void
  /** An edit cannot be used; the last good version stays. Called once for each bad version. */
  readonly onError?: (error: ConfigFileError) => void
  /**
   * `file-worker.ts`, or what it was bundled to: edits are then read in a thread of its own, so that a large file does not
   * hold up traffic. Absent: in this thread.
   */
  readonly worker?: URL
  /** How often files are compared even without a notice from the system; default 5 s. */
  readonly pollMs?: number
}

export interface FollowedConfigFile {
  readonly process: ProcessConfig
  close(): void
}

/**
 * Reads a `-f` file into the store and follows edits of it and of the certificates it names.
 * @throws ConfigFileError when the first version is bad
 */
export async function followConfigFile(options: FollowConfigFileOptions): Promise<FollowedConfigFile> {
  const { path, store, onReload, onError, worker } = options
  const first = await loadConfigFile(path, options)
  store.replace('file', first.messages)
  let latest = first.texts
  const watch: FileWatch = watchFiles(first.texts, options.pollMs ?? 5000, async () => {
    try {
      const loaded = await (worker === undefined ? loadConfigFile(path, options) : loadInWorker(worker, path, options))
      latest = loaded.texts
      store.replace('file', loaded.messages)
      onReload?.(loaded)
    } catch (error) {
      const failure = error instanceof ConfigFileError ? error : new ConfigFileError([`${path}: ${String(error)}`], latest)
      latest = failure.texts
      onError?.(failure)
    }
    return latest
  })
  return { process: first.process, close: watch.close }
}

/** What the worker thread posts: a loaded file, or what a ConfigFileError holds. */
export type WorkerAnswer = LoadedConfigFile | { readonly problems: readonly string[]; readonly texts: FileTexts }

async function loadInWorker(url: URL, path: string, { namespace, gateway }: ConfigFileOptions): Promise<LoadedConfigFile> {
  const answer = await new Promise<WorkerAnswer>((settle, reject) => {
    const worker = new Worker(url, { workerData: { path, options: { namespace, gateway } } })
    worker.on('message', settle).on('error', reject)
    worker.on('exit', () => reject(new Error('the thread that reads the config file ended without an answer')))
  })
  if ('problems' in answer) throw new ConfigFileError(answer.problems, answer.texts)
  return answer
}

const readErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'no permission to read it',
  EISDIR: 'is a directory; name a file',
  ENOTDIR: 'part of the path is not a directory',
}

function describeReadError(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return readErrors[code] ?? `cannot be read: ${message}`
}
