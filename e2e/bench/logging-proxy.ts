import { startDataplane, type Dataplane } from '../harness/program/dataplane.ts'
import type { Bench } from './bench.ts'

/** Options of `startLogging`. */
export interface LoggingProxy {
  /** The `-f` file. */
  readonly file: string
  /** File for standard output. */
  readonly log: string
  readonly hasLog: boolean
}

/** Starts a data plane that writes its access log, if enabled, to a file, as under a container runtime. */
export function startLogging(bench: Bench, { file, log, hasLog }: LoggingProxy): Promise<Dataplane> {
  // The file becomes file descriptor 1.
  const toFile = `import { closeSync, openSync } from 'node:fs'; closeSync(1); openSync(${JSON.stringify(log)}, 'a')`
  return startDataplane({
    config: { file },
    entry: bench.bundle,
    cpus: String(bench.proxyCpu),
    log: hasLog ? 'warn,request=info' : 'warn',
    nodeArgs: [
      '--import',
      `data:text/javascript,${encodeURIComponent(toFile)}`,
      ...(bench.profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${bench.profiles}`]),
    ],
  })
}
