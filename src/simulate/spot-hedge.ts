import { regionOf, type SimulatedSpotReplica, type SpotPolicyOf, type SpotWorld } from './spot-fleet.ts';
import { firstToEnd, hedgeMarkets, orderZones, type HedgeFacts, type HedgeReplica } from '../domain/spot/hedge.ts';
import { recordAccepted, recordLoss, recordRefusal, recordRunning, type ZoneHistory } from '../domain/spot/zone-history.ts';

interface HedgedReplica extends HedgeReplica {
  readonly simulated?: SimulatedSpotReplica;
}

/** The production policy, asked as production asks it: each refusal is recorded, then everything is decided again. */
export const hedge: SpotPolicyOf = ({ onDemandPrice, spotPrices, coldStartMs }, names) => {
  const zones = names.map((zone, index) => ({ zone, region: regionOf(zone), price: spotPrices?.[index] ?? 1 }));
  const histories: Record<string, ZoneHistory> = {};
  const nameOf = (zone: number): string => names[zone] ?? '';
  const factsOf = ({ now, target, spot, onDemand }: SpotWorld): HedgeFacts<HedgedReplica> => ({
    target,
    coldStartMs,
    onDemandPrice,
    zones,
    histories,
    now,
    replicas: [
      ...spot.map((simulated) => ({
        simulated,
        zone: nameOf(simulated.zone),
        region: regionOf(nameOf(simulated.zone)),
        isSpot: true,
        isReady: simulated.readyAt <= now,
        launchedAt: simulated.launchedAt,
      })),
      ...onDemand.map(({ launchedAt, readyAt }) => ({ zone: '', region: '', isSpot: false, isReady: readyAt <= now, launchedAt })),
    ],
  });

  /** Asks one zone. False when no zone may be asked. */
  const launch = (world: SpotWorld): boolean => {
    const [zone] = orderZones(factsOf(world));
    if (zone === undefined) return false;
    const index = names.indexOf(zone);
    histories[zone] = world.launchSpot(index)
      ? recordAccepted(histories[zone], world.now)
      : recordRefusal(histories[zone], world.now, world.inZone(index) > 0);
    return true;
  };

  return {
    onLoss: (zone, { now }) => {
      histories[nameOf(zone)] = recordLoss(histories[nameOf(zone)], now);
    },
    step: (world) => {
      for (const [index, zone] of names.entries()) if (world.inZone(index) > 0) histories[zone] = recordRunning(histories[zone], world.now);
      let markets = hedgeMarkets(factsOf(world));
      while (world.spot.length < markets.spot && launch(world)) markets = hedgeMarkets(factsOf(world));
      while (world.spot.length > markets.spot) {
        // As `planReplicas`: when fewer are needed, replicas that start end before those that serve.
        const surplus = world.spot.findLast(({ readyAt }) => readyAt > world.now) ?? firstToEnd(factsOf(world))?.simulated;
        if (surplus === undefined) break;
        world.endSpot(surplus);
        markets = hedgeMarkets(factsOf(world));
      }
      world.setOnDemand(markets.onDemand);
    },
  };
};
