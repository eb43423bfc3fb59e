import { findTroubles } from '../program/report.ts'
import { readManifests } from './manifests.ts'
import { UsageError, alignColumns } from './output.ts'
import type { Command } from './types.ts'

/** Something about a manifest. `where` is `file:line`, or the object. */
interface Finding {
  readonly severity: 'error' | 'note'
  readonly where: string
  readonly message: string
}

/** Checks a directory of manifests as the API server and the operator would. 1 when something is wrong. */
export const runLint: Command = async ({ args, output }) => {
  const [directory, ...rest] = args
  if (directory === undefined || rest.length > 0) throw new UsageError('lint takes one directory (or file) of manifests')
  const { problems, translation, strayRoutes } = await readManifests(directory)
  const findings: Finding[] = [
    ...problems.map(({ severity, file, line, field, message }) => ({
      severity,
      where: `${file}:${line}`,
      message: field === '' ? message : `${field}: ${message}`,
    })),
    ...findTroubles(translation.statuses)
      // What is fetched over the network is not there when nothing is fetched.
      .map(({ kind, namespace, name, type, reason, message }) => ({
        severity: 'error' as const,
        where: `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`,
        message: `${type}: ${reason}: ${message}`,
      })),
    // Its Gateway may be kept elsewhere.
    ...strayRoutes.map(({ kind, namespace, name, message }) => ({ severity: 'note' as const, where: `${kind} ${namespace}/${name}`, message })),
  ]
  const errors = findings.filter(({ severity }) => severity === 'error').length
  output.print({ errors, findings }, () => [
    ...alignColumns(findings.map(({ severity, where, message }) => [output.paint(severity === 'error' ? 'red' : 'gray', severity), where, message])),
    errors === 0 ? output.paint('green', `${directory}: no error`) : `${directory}: ${errors} error${errors === 1 ? '' : 's'}`,
  ])
  return errors === 0 ? 0 : 1
}
