import { checkExpression } from './expression.ts'
import { createKeySets } from '../jwks/index.ts'
import { textOf } from '../runtime/log.ts'
import { createConfigServer } from '../serve/server.ts'
import { watchDirectory, type Load } from '../source/directory.ts'
import { findTroubles, summarizeGateways, type ReportEvent } from './report.ts'

export interface DirectoryModeOptions {
  readonly directory: string
  /** `host:port` of the config stream; port 0 picks one. Not authenticated: loopback only. */
  readonly listen: string
  readonly report: (event: ReportEvent) => void
}

/**
 * Standalone mode: translates a directory of manifests instead of a cluster's objects, serves the config stream on loopback,
 * and reports statuses as events where a cluster would get them written.
 */
export async function runDirectoryMode({ directory, listen, report }: DirectoryModeOptions): Promise<{ close(): Promise<void> }> {
  const server = createConfigServer({
    onNack: ({ role, resources, message }) => {
      const rejected = resources.map(({ key, error }) => `${key}: ${error}`).join('; ') || message
      report({ event: 'error', message: `the data plane of ${role ?? 'an unknown Gateway'} rejected part of the config: ${rejected}` })
    },
  })
  const host = listen.slice(0, listen.lastIndexOf(':'))
  const reporter = createReporter(report)
  let latest: Load | undefined
  const keySets = createKeySets({
    isLoopbackAllowed: true,
    onChange: () => latest && publish(latest),
    onError: (url, error) => report({ event: 'error', message: `key set ${url}: ${textOf(error)}; it is tried again, and what was fetched before stays` }),
  })
  const publish = (load: Load): void => {
    latest = load
    const translation = keySets.translate(load.snapshot, { isStandalone: true, checkExpression })
    server.publish(translation)
    reporter.problems(load.problems)
    reporter.conditions(findTroubles(translation.statuses))
    reporter.gateways(summarizeGateways(translation))
  }
  const source = await watchDirectory(directory, publish, {
    onError: (error) => report({ event: 'error', message: `${describeFailure(directory, error)}; its last state stays` }),
  }).catch((error: unknown) => {
    throw new Error(describeFailure(directory, error), { cause: error })
  })
  try {
    const port = await server.listen(listen)
    report({ event: 'listening', address: `${host}:${port}` })
  } catch (error) {
    source.close()
    throw error
  }
  publish(source.current())
  return {
    async close() {
      source.close()
      keySets.close()
      await server.close()
    },
  }
}

const failures: Readonly<Record<string, string>> = {
  ENOENT: 'no such directory',
  EACCES: 'no permission to read it',
  ENOTDIR: 'part of the path is not a directory',
}

function describeFailure(directory: string, error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return `${directory}: ${failures[code] ?? message}`
}

/** Reports each problem once, and again only after it was solved. */
function createReporter(report: (event: ReportEvent) => void) {
  let reported: ReadonlySet<string> = new Set()
  let reportedConditions: ReadonlySet<string> = new Set()
  let lastGateways = ''
  const reportNew = (before: ReadonlySet<string>, events: readonly ReportEvent[]): ReadonlySet<string> => {
    const now = new Map(events.map((event) => [JSON.stringify(event), event]))
    for (const [key, event] of now) if (!before.has(key)) report(event)
    return new Set(now.keys())
  }
  return {
    problems(problems: Load['problems']): void {
      reported = reportNew(
        reported,
        problems.flatMap(({ severity, file, line, field, message }) =>
          severity === 'note' ? [] : [{ event: 'error', file, line, message: field === '' ? message : `${field}: ${message}` }],
        ),
      )
    },
    conditions(troubles: ReturnType<typeof findTroubles>): void {
      reportedConditions = reportNew(
        reportedConditions,
        troubles.map((trouble) => ({ event: 'condition', ...trouble })),
      )
    },
    gateways(gateways: ReturnType<typeof summarizeGateways>): void {
      const text = JSON.stringify(gateways)
      if (text === lastGateways) return
      lastGateways = text
      report({ event: 'config', gateways })
    },
  }
}
