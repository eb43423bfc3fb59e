import type { Snapshot } from '../source/snapshot.ts'
import type { TranslateOptions } from './common/context.ts'
import type { Translation } from '../model/translation.ts'
import { createTranslator } from './translator.ts'

/**
 * Translates a Snapshot to the config of every Gateway of ours and the statuses of the objects that the operator manages.
 * Pure: no clock, no I/O; equal input gives equal output. Users' mistakes end up in statuses and never throw.
 */
export function translate(snapshot: Snapshot, options: TranslateOptions = {}): Translation {
  return createTranslator()(snapshot, options)
}
