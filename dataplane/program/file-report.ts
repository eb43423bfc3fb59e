import type { ConfigFileError } from '../config/file/problem.ts'
import type { ReadFile } from '../config/file/read.ts'
import type { Logger } from '../observe/telemetry/log.ts'

type Read = Pick<ReadFile, 'warnings' | 'notes'>

/** Logs what happens to the config file. */
export interface FileReport {
  /** Logs values that cannot work. */
  warn(read: Read): void
  reloaded(read: Read, version: number): void
  /** Logs the errors of an edit that was not applied. */
  failed(error: Pick<ConfigFileError, 'problems'>): void
}

/** The text of a problem without its position, which moves with edits above it. */
const textOf = (problem: string): string => problem.replace(/^.*?:\d+:\d+: /, '')

/** Problems of a list that another list does not have. */
function without(problems: readonly string[], others: readonly string[]): string[] {
  const texts = new Set(others.map(textOf))
  return problems.filter((problem) => !texts.has(textOf(problem)))
}

/** Logs each problem of the config file once, on a line of its own, and its solution. */
export function createFileReport(log: Pick<Logger, 'info' | 'warn' | 'error'>, file: string | undefined): FileReport {
  let errors: readonly string[] = []
  let warnings: readonly string[] = []
  let notes: readonly string[] = []
  const solved = (problem: string): void => log.info('config file: problem solved', { problem })
  const warn: FileReport['warn'] = (read) => {
    for (const problem of without(warnings, read.warnings)) solved(problem)
    for (const problem of without(read.warnings, warnings)) log.warn('part of the config file cannot work', { code: 'PX4003', problem })
    warnings = read.warnings
    for (const problem of without(notes, read.notes)) solved(problem)
    for (const problem of without(read.notes, notes)) log.warn('a port has no client authentication', { code: 'PX3016', problem })
    notes = read.notes
  }
  return {
    warn,
    reloaded(read, version) {
      for (const problem of errors) solved(problem)
      errors = []
      log.info('config file reloaded', { file, version })
      warn(read)
    },
    failed({ problems }) {
      for (const problem of without(errors, problems)) solved(problem)
      for (const problem of without(problems, errors)) log.error('config file not usable; its last good version stays', { code: 'PX4004', error: problem })
      errors = problems
    },
  }
}
