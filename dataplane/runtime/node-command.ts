import { basename, dirname } from 'node:path'
import { bridgeFiles, bridgeNode } from '#api/bridge.ts'

/**
 * Program and first arguments that start Node like this process. The Node of a bridge (dataplane/program/bridge) was started by its loader, which is what
 * `process.execPath` names.
 */
export function nodeCommand(execPath = process.execPath): readonly [string, ...string[]] {
  return basename(execPath) === bridgeFiles.loader ? bridgeNode(dirname(execPath)) : [execPath]
}
