"""The front door with the names of NeMo Automodel's `datasets.vlm`: change one prefix and carry on.

Modules here turn dictionaries into records, call the rooms, and turn the result back. `docs/coming-from-automodel.md`
says where each name lives and what is better here.

The five pages, and what they are made of:

    datasets           examples of meta files and of well-known data sets; data sets that tokenise and replace
      examples           the example form and `Conversation`; a lazy list of examples
      mixture            meta files, and each rank's share of them
      replacement        which sample stands in for one that fails, and where that is written down
    collate_fns        examples → a batch, for each family
      batches            the way of a batch, by the rooms; pages for Nemotron-Parse
      padded_batches     samples and packs → padded dictionaries with counts and masks; the shift
      label_search       labels for ids that were tokenised elsewhere
    neat_packing_vlm   packs, planned at once and built when they are asked for
      planning           what samples cost; bins of like cost, and their order
      packed_samples     samples → one pack: positions, the shift, joining
    samplers           samples in order of their length
      estimate           lengths by characters and sizes; statistics of examples
    pp_media           media for stages of a pipeline
      media_rows         whose media are whose, by the counts of a batch
      pipeline_stage     media at the first stage, for one call of a schedule
"""
