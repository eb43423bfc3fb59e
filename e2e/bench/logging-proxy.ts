import { startDataplane, type Dataplane } from '../harness/program/dataplane.ts'
import type { Bench } from './bench.ts'

export interface LoggingProxy {
  /** The `-f` file. */
  readonly file: string
  /** File that standard output goes to. */
  readonly log: string
  readonly hasLog: boolean
}

/** A data plane whose access log, if it has one, goes to a file: read by nobody, as a container runtime's would be by somebody else. */
export function startLogging(bench: Bench, { file, log, hasLog }: LoggingProxy): Promise<Dataplane> {
  // Descriptor 1 becomes the file.
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
