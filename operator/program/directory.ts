import { checkExpression } from './expression.ts'
import { createRemotes } from '../remote/index.ts'
import { describeImage } from '../remote/plugin-image.ts'
import type { RegistryFiles } from '../remote/registry-access.ts'
import { createQuotaServer } from '../quota/server.ts'
import { textOf } from '../runtime/log.ts'
import { createConfigServer, roleOf } from '../serve/server.ts'
import { createReported } from '../status/reported.ts'
import type { GrantMode } from '../model/translation.ts'
import { watchDirectory, type Load } from '../source/directory.ts'
import { findClusterFields, settingsOfGateways, SettingsDirectory } from './dataplane-settings.ts'
import { findConditions, findOverlaps, findStrayRoutes } from './findings.ts'
import { summarizeGateways, type GatewaySummary, type ReportEvent } from './report.ts'

export interface DirectoryModeOptions {
  readonly directory: string
  /** `host:port` of the config stream; port 0 picks one. Not authenticated: loopback only. */
  readonly listen: string
  readonly report: (event: ReportEvent) => void
  /** Default: all references to other namespaces need a ReferenceGrant. */
  readonly backendGrants?: GrantMode
  /** Default: the CAs of the system, and no credentials. */
  readonly registryFiles?: RegistryFiles
}

/**
 * Standalone mode: translates a directory of manifests instead of a cluster's objects, serves the config stream on loopback,
 * and reports statuses as events where a cluster would get them written.
 */
export async function runDirectoryMode({
  directory,
  listen,
  report,
  backendGrants,
  registryFiles = {},
}: DirectoryModeOptions): Promise<{ close(): Promise<void> }> {
  const quota = createQuotaServer()
  const server = createConfigServer({
    services: [quota.service],
    onReport: () => latest && publish(latest),
    onNack: ({ role, resources, message }) => {
      const rejected = resources.map(({ key, error }) => `${key}: ${error}`).join('; ') || message
      report({ event: 'error', message: `the data plane of ${role ?? 'an unknown Gateway'} rejected part of the config: ${rejected}` })
    },
  })
  const host = listen.slice(0, listen.lastIndexOf(':'))
  const reporter = createReporter(report)
  const addReported = createReported()
  const settings = new SettingsDirectory()
  /** Settings are written in order; the event of a Gateway names files that are complete. */
  let written: Promise<void> = Promise.resolve()
  let latest: Load | undefined
  const remotes = createRemotes({
    isLoopbackAllowed: true,
    onChange: () => latest && publish(latest),
    keySets: {
      onError: (url, error) => report({ event: 'error', message: `key set ${url}: ${textOf(error)}; retrying, keys that were fetched before stay in use` }),
    },
    documents: {
      onError: (url, error) =>
        report({ event: 'error', message: `OpenAPI document ${url}: ${textOf(error)}; retrying, the document that was fetched before stays in use` }),
    },
    pluginImages: {
      files: registryFiles,
      onError: (url, error) => report({ event: 'error', message: `image of a plugin ${describeImage(url)}: ${textOf(error)}; retrying` }),
    },
  })
  const publish = (load: Load): void => {
    latest = load
    const translated = remotes.translate(load.snapshot, { isStandalone: true, runsServers: false, checkExpression, ...(backendGrants && { backendGrants }) })
    const reports = server.reports()
    const translation = { ...translated, statuses: addReported(translated, (gateway) => reports.get(roleOf(gateway))) }
    server.publish(translation)
    quota.publish(translation)
    reporter.findings([
      ...describeProblems(load),
      ...findConditions(load, translation).map(({ place, ...condition }): Finding => ({ event: 'condition', ...condition, ...place })),
      ...[...findStrayRoutes(load, translation), ...findOverlaps(load, translation), ...findClusterFields(load)].map(({ place, ...finding }): Finding => {
        return { event: 'warning', ...finding, ...place }
      }),
    ])
    const wanted = settingsOfGateways(load.snapshot)
    written = written
      .then(() => settings.write(wanted))
      .then((files) => reporter.gateways(summarizeGateways(translation, files)))
      .catch((error: unknown) => report({ event: 'error', message: `cannot write the settings of data planes: ${textOf(error)}` }))
  }
  const source = await watchDirectory(directory, publish, {
    onError: (error) => report({ event: 'error', message: `${describeFailure(directory, error)}; the last valid state stays in use` }),
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
      remotes.close()
      await quota.close()
      await server.close()
      await written
      await settings.close()
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

/** An event that reports a problem until it is solved. */
type Finding = Extract<ReportEvent, { event: 'error' | 'condition' | 'warning' }>

function describeProblems({ problems }: Load): Finding[] {
  return problems.flatMap(({ severity, file, line, column, field, message }): Finding[] =>
    severity === 'note' ? [] : [{ event: 'error', file, line, column, message: field === '' ? message : `${field}: ${message}` }],
  )
}

/** What the finding is about: a finding with another message is not solved. */
function subjectOf(finding: Finding): string {
  if (finding.event === 'error') return [finding.file, finding.message.split(': ', 1)[0]].filter((part) => part !== undefined).join(': ')
  const object = `${finding.kind} ${finding.namespace}/${finding.name}`
  const part = finding.event === 'condition' ? finding.type : /^rule \d+/.exec(finding.message)?.[0]
  return part === undefined ? object : `${object}: ${part}`
}

/** Reports each problem once, again only after it was solved, and when it is solved. */
function createReporter(report: (event: ReportEvent) => void) {
  let reported: ReadonlyMap<string, Finding> = new Map()
  let lastGateways = ''
  return {
    findings(findings: readonly Finding[]): void {
      const now = new Map(findings.map((finding) => [keyOf(finding), finding]))
      for (const [key, finding] of now) if (!reported.has(key)) report(finding)
      const open = new Set(findings.map(subjectOf))
      const solved = new Set([...reported.values()].flatMap((finding) => (isShown(finding) && !open.has(subjectOf(finding)) ? [subjectOf(finding)] : [])))
      for (const problem of solved) report({ event: 'solved', problem })
      reported = now
    },
    gateways(gateways: readonly GatewaySummary[]): void {
      const text = JSON.stringify(gateways)
      if (text === lastGateways) return
      lastGateways = text
      report({ event: 'config', gateways })
    },
  }
}

const isShown = (finding: Finding): boolean => finding.event !== 'condition' || !finding.isConsequence

/** Without its position: an edit above a problem moves it. */
const keyOf = (finding: Finding): string => JSON.stringify({ ...finding, line: undefined, column: undefined })
